import os
import tempfile

from item_retrieval import *

dev = "cuda:0"
batch = Batch(torch.tensor([0, 3, 5, 7]), torch.tensor([1, 2, 8, 9])).to(dev)
COUNTS = list(range(1, 11))


def tower():
    return TwoTower(10, 10).to(dev)


def popular():
    model = tower()
    model.set_popularity(COUNTS)
    return model.full_softmax(batch)


def popular_before():
    model = TwoTower(10, 10)
    model.set_popularity(COUNTS)
    return model.to(dev).full_softmax(batch)


def train(optimizer):
    model = tower()
    opt = optimizer(model.parameters(), lr=0.05)
    for _ in range(2):
        opt.zero_grad()
        model.contrastive(batch).backward()
        opt.step()


def flat():
    index = FlatIndex()
    index.add(tower().item.weight, [f"item{i}" for i in range(10)])
    return index


def ivf():
    model = tower()
    vectors = model.item.weight.detach()
    return IVFIndex(vectors[:2].cpu().clone()).to(dev).build(vectors)


def save(queries):
    with tempfile.TemporaryDirectory() as folder:
        flat().save(os.path.join(folder, "index.npz"), queries)


def evaluate(metric):
    scores = mask_seen(tower().scores(batch.users), [0, 1], [4, 5])
    relevant = torch.rand(4, 10, device=dev) > 0.5
    return metric(scores, relevant, 3)


CALLS = {
    "sharded": lambda: ShardedEmbedding(10, 4, ["cuda:0", "cuda:1"])(batch.items),
    "sharded_reg": lambda: ShardedEmbedding(10, 4, ["cuda:0", "cuda:1"]).regularization(batch.items),
    "bag": lambda: HistoryEncoder(10, 4).to(dev)(batch.items, [1, 3]),
    "bag_padded": lambda: HistoryEncoder(10, 4).to(dev).forward_padded(batch.items.view(2, 2), torch.tensor([1, 2], device=dev)),
    "bpr": lambda: tower().bpr(batch, UniformSampler(10)),
    "bpr_popular": lambda: tower().bpr(batch, PopularitySampler(COUNTS)),
    "avoid": lambda: AvoidingSampler(torch.rand(10, 10) > 0.5).sample_for(batch),
    "avoid_compact": lambda: AvoidingSampler(torch.rand(10, 10) > 0.5).sample_compact(batch),
    "full": lambda: tower().full_softmax(batch),
    "popular": popular,
    "popular_before": popular_before,
    "in_batch": lambda: tower().in_batch_softmax(batch),
    "contrastive": lambda: tower().contrastive(batch),
    "train": lambda: train(RowwiseAdagrad),
    "train_adagrad": lambda: train(torch.optim.Adagrad),
    "flat": lambda: flat().names(torch.randn(2, 16, device=dev), 3),
    "save": lambda: save(None),
    "save_queries": lambda: save(torch.randn(2, 16, device=dev)),
    "probe": lambda: ivf().probe(torch.randn(16, device=dev), 2, nprobe=2),
    "rescore": lambda: ivf().rescore(torch.randn(16, device=dev), [1, 4]),
    "recall": lambda: evaluate(recall_at_k),
    "ndcg": lambda: evaluate(ndcg_at_k),
    "coverage": lambda: catalogue_coverage(tower().scores(batch.users), 3),
}
