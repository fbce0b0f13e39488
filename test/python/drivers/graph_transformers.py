import torch

import graph_transformers as gt

DEV = torch.device("cuda", 0)


def _graph(n, key=None, seed=0):
    g = torch.Generator().manual_seed(seed)
    src = torch.arange(n)
    extra = torch.randint(0, n, (2, 3), generator=g)
    edges = torch.cat([torch.stack([src, (src + 1) % n]), torch.stack([(src + 1) % n, src]), extra], dim=1)
    return gt.GraphBatch(torch.randint(0, 7, (n,), generator=g), edges,
                         torch.randint(0, 4, (edges.shape[1],), generator=g),
                         torch.zeros(n, dtype=torch.long), 1, keys=(key,) if key else ())


def _graphs(keyed=False):
    return [_graph(n, f"g{n}" if keyed else None, n) for n in (6, 8, 5)]


def _batch(keyed=False):
    return gt.GraphBatch.collate(_graphs(keyed)).to(DEV)


def _config(**kw):
    return gt.GraphConfig(**kw)


def _model(**kw):
    readout = kw.pop("readout", "mean")
    return gt.GraphTransformer(_config(readout=readout), **kw).to(DEV)


def drive_basic_training():
    out = _model()(_batch())
    out.sum().backward()
    return out


def drive_predict():
    return _model(biases=("distance", "edge")).predict(_graphs())


def drive_explain():
    return _model().explain(gt.GraphBatch.collate(_graphs()))


def drive_laplacian_eval():
    model = _model(encodings=("laplacian",)).eval()
    model(_batch(True))
    return model(_batch(True))


def drive_laplacian_train():
    return _model(encodings=("laplacian",))(_batch(True))


def drive_heat():
    return _model(encodings=("heat",))(_batch(True))


def drive_decay():
    return _model(biases=("decay",))(_batch())


def drive_edge():
    return _model(biases=("edge",))(_batch())


def drive_virtual():
    return _model(readout="virtual")(_batch())


def drive_topk():
    return _model(readout="topk")(_batch())


def drive_ranks():
    model = _model(readout="topk")
    graph = _batch()
    return model.readout.ranks(model.node_states(graph), graph)


def drive_dense():
    graph = _batch()
    return gt.to_dense(torch.randn(graph.num_nodes, 3, device=DEV), graph)


def drive_subgraph():
    return _batch().subgraph(torch.tensor([0, 2, 3, 9], device=DEV))


def drive_motifs():
    graph = _graphs()[0]
    graph.extras = {"motifs": [torch.tensor([0, 1]), torch.tensor([3, 4, 5])], "charge": torch.zeros(6)}
    graph = graph.to(DEV)
    return graph.motif_sums(torch.randn(6, 4, device=DEV))


def drive_balanced_loss():
    return _model().balanced_loss(_batch(), torch.tensor([0, 2, 2], device=DEV))


def drive_cross_entropy():
    loss = torch.nn.functional.cross_entropy(_model(readout="topk")(_batch()), torch.tensor([0, 2, 2], device=DEV))
    loss.backward()


def drive_softmax():
    return gt.segment_softmax(torch.randn(5, 1, device=DEV), torch.tensor([0, 0, 1, 2, 2], device=DEV), 4)


def drive_collated_on_gpu():
    return _model(biases=("distance", "edge"), encodings=("laplacian", "degree")).eval()(
        gt.GraphBatch.collate([g.to(DEV) for g in _graphs(True)]))


def drive_depth():
    return gt.StochasticDepth(0.4).to(DEV)(torch.randn(4, 3, device=DEV))


def drive_second_gpu():
    model = gt.GraphTransformer(_config()).to("cuda:1")
    return model.predict(_graphs())
