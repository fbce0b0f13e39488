import numpy as np
import torch
from session_recommenders import *

D = "cuda"
S = [[1, 2, 3, 4], [5, 6, 5, 7, 8], [9, 10, 3]]


def batch(d=D):
    return collate(S).to(d)


def net(name="attention", d=D):
    return build_model(RecConfig(name=name)).to(d)


def moved(name, similar):
    m = net(name).eval()
    m.similar(torch.tensor([3], device=D))
    m = m.to("cuda:1")
    items = torch.tensor([1, 2], device="cuda:1")
    if similar:
        return m.similar(items)
    return m(batch("cuda:1"))


def gru(lazy):
    g = ParallelGRU(RecConfig(), lazy).to(D)
    g(torch.tensor([1, 2, 3], device=D))
    return g(torch.tensor([4, 2, 3], device=D), [0, 2])


def loss(sampler, correct=False):
    return SampledLoss(net(), sampler, correct).to(D)(batch())


def seen(h):
    return net().recommend(batch(), mask_seen=SeenMask(h))


def replay(what):
    r = SessionReplay()
    if what == "empty":
        return r.mix(batch())
    r.store(batch())
    return r.mix(batch()) if what == "mix" else r.penalty(net())


def knn(restore):
    k = SessionNeighbours(20).fit([batch(), batch()])
    k = SessionNeighbours.restore(k.state()) if restore else k
    return k.predict(batch())


def report(per):
    top, r = net().recommend(batch(), 5), RankingReport()
    if per:
        return r.per_session(top, batch().target)
    r.update(top, batch().target)
    return r.compute()


NAMES = [f"item{i}" for i in range(20)]
H = [[1, 2], [3], [4, 5, 6]]
CALLS = {
    "attention": lambda: net()(batch()),
    "graph": lambda: net("graph")(batch()),
    "cached": lambda: moved("cached", False),
    "cached_similar": lambda: moved("cached", True),
    "decay": lambda: moved("cached_decay", False),
    "decay_similar": lambda: moved("cached_decay", True),
    "gru": lambda: gru(True),
    "gru_eager": lambda: gru(False),
    "uniform": lambda: loss(NegativeSampler(20), True),
    "popular": lambda: loss(PopularitySampler(np.arange(1, 21)), True),
    "hard": lambda: loss(HardSampler(np.arange(1, 21))),
    "inbatch_ce": lambda: InBatchLoss("cross_entropy")(net(), batch()),
    "inbatch_top1": lambda: InBatchLoss()(net(), batch()),
    "inbatch_bpr": lambda: InBatchLoss("bpr_max")(net(), batch()),
    "seen": lambda: seen(None),
    "seen_histories": lambda: seen(H),
    "seen_pairs": lambda: SeenMask(H).by_pairs(torch.randn(3, 20, device=D)),
    "replay_empty": lambda: replay("empty"),
    "replay_mix": lambda: replay("mix"),
    "replay_penalty": lambda: replay("penalty"),
    "knn": lambda: knn(False),
    "knn_restored": lambda: knn(True),
    "bandit": lambda: LinearBandit(4).learn(torch.randn(4, device=D), 3, 1.0),
    "bandit_prior": lambda: LinearBandit(4).prior_bound(torch.randn(2, 4, device=D)),
    "report": lambda: report(False),
    "report_sessions": lambda: report(True),
    "explain": lambda: Catalogue(NAMES).explain(net().recommend(batch())),
    "label": lambda: Catalogue(NAMES).label(net().recommend(batch())),
}
