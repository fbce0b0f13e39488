from sharding import *

TWO = ["cuda:0", "cuda:1"]


def x(*shape):
    torch.manual_seed(0)
    return torch.randn(*(shape or (6, 8)), device="cuda:0")


def ids():
    return torch.randint(0, 20, (4, 6), device="cuda:0")


def trained(model, inputs):
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(inputs).pow(2).mean().backward()
    global_grad_norm(model.parameters())
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()


def with_grads():
    model = ColumnParallelLinear(8, 6, TWO)
    model(x()).sum().backward()
    return model


def pipeline(causal=False, **kwargs):
    stages = [FeedForwardStage(8), CausalStage(8) if causal else FeedForwardStage(8)]
    return PipelineModel(20, 8, stages, TWO, **kwargs)


def pipeline_step():
    model = pipeline()
    opt = torch.optim.AdamW(model.parameters())
    model.loss(ids()).backward()
    opt.step()


def adam(pinned):
    model = pipeline()
    opt = OffloadedAdam(model.parameters(), pinned_grads=pinned)
    model.loss(ids()).backward()
    opt.step()


def replicas():
    return [FeedForwardStage(8).to(d) for d in TWO]


def nccl(call):
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    return call()


def parallel_loss():
    head = ColumnParallelLinear(8, 20, TWO, gather_output=False)
    vocab_parallel_cross_entropy(head(x()), torch.randint(0, 20, (6,), device="cuda:0")).backward()


CALLS = {
    "sizes": lambda: split_sizes(10, 3),
    "column": lambda: trained(ColumnParallelLinear(8, 6, TWO), x()),
    "full_weight": lambda: ColumnParallelLinear(8, 6, TWO).full_weight(),
    "row": lambda: trained(RowParallelLinear(8, 6, TWO), x()),
    "mlp": lambda: trained(ParallelMLP(8, TWO), x()),
    "mlp_stack": lambda: ParallelMLP(8, TWO, reduce="stack")(x()),
    "embedding": lambda: trained(VocabParallelEmbedding(20, 8, TWO), ids()),
    "lookup": lambda: VocabParallelEmbedding(20, 8, TWO).lookup(ids()),
    "loss": parallel_loss,
    "causal_alone": lambda: CausalStage(8).to("cuda:0")(x(2, 5, 8)),
    "causal": lambda: pipeline(causal=True)(ids()),
    "pipeline": pipeline_step,
    "pipeline_skip": lambda: pipeline(long_skip=True)(ids()),
    "score": lambda: pipeline().score(ids()),
    "experts": lambda: trained(ExpertParallel(8, 4, TWO), x()),
    "dispatch": lambda: ExpertParallel(8, 4, TWO).dispatch(x(), torch.arange(6, device="cuda:0") % 4),
    "dropout": lambda: ShardedDropout(0.1, TWO)(x()),
    "dropout_second": lambda: ShardedDropout(0.1, TWO[:1])(x().to("cuda:1")),
    "clip": lambda: clip_by_global_norm(with_grads().parameters(), 0.1),
    "adam": lambda: adam(True),
    "adam_direct": lambda: adam(False),
    "data_parallel": lambda: data_parallel(FeedForwardStage(8).to("cuda:0"), x(), [0, 1]),
    "synchronize": lambda: synchronize(replicas()),
    "distance": lambda: parameter_distance(*replicas()),
    "gather_ragged": lambda: nccl(lambda: gather_ragged(x())),
}
