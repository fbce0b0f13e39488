import numpy as np
import torch
from torch import nn
from recsys import *

torch.manual_seed(0)
np.random.seed(0)
D = "cuda:0"
FIELDS = [4, 5, 6]
C = SequenceConfig()


def fields():
    return torch.randint(0, 4, (5, 3), device=D)


def seqs():
    return torch.tensor([[3, 4, 5, 0], [6, 7, 0, 0], [8, 9, 10, 11]], device=D)


def pairs():
    return torch.arange(5, device=D), torch.randint(1, 20, (5,), device=D)


def factors(popular=False):
    return MatrixFactorization(6, 20, sampler=PopularitySampler(np.arange(1, 21.0)) if popular else None).to(D)


SERIES = np.random.randn(30, 2)
X = lambda *shape: torch.randn(*shape, device=D)


def towers(second):
    return ShardedTwoTower(6, 20, 8, (D, second))


def samples(scale=None):
    return ancestral_samples(nn.GRUCell(1, 4).to(D), nn.Linear(4, 2).to(D), X(5, 1), scale=scale)


CALLS = {
    "fm": lambda: FactorizationMachine(FIELDS).to(D)(fields()),
    "fm_linear": lambda: FactorizationMachine(FIELDS, linear=True).to(D)(fields()),
    "bag": lambda: BagOfItems(20, 8).to(D)(list(seqs())),
    "bpr": lambda: factors().bpr_loss(*pairs()),
    "softmax": lambda: factors(True).sampled_softmax(*pairs()),
    "in_batch": lambda: factors().in_batch(*pairs()),
    "in_batch_popular": lambda: factors(True).in_batch(*pairs()),
    "recommend": lambda: factors().recommend([1, 2], {1: [3, 4]}),
    "towers": lambda: towers("cuda:1")(*pairs()),
    "retrieve": lambda: towers("cuda:1").retrieve(pairs()[0]),
    "retrieve_one": lambda: towers("cuda:0").retrieve(pairs()[0]),
    "sasrec": lambda: SASRec(C).to(D)(seqs()),
    "sasrec_sliced": lambda: SlicedSASRec(C).to(D)(seqs()),
    "gru": lambda: GRU4Rec(C).to(D)(seqs()),
    "gru_last": lambda: GRU4Rec(C).to(D).last_state(seqs()),
    "gru_step": lambda: GRU4Rec(C).to(D).session_step(seqs()[:, 0]),
    "gru_step_hidden": lambda: GRU4Rec(C).to(D).session_step(seqs()[:, 0], X(1, 3, 8)),
    "scale": lambda: StandardScaler().fit(SERIES).transform(X(4, 2)),
    "unscale": lambda: StandardScaler().fit(SERIES).inverse_transform(X(4, 2)),
    "backcast": lambda: NBeatsTrend(2, 6, 3).to(D).backcast(X(4, 6)),
    "nbeats": lambda: NBeatsTrend(2, 6, 3).to(D)(X(4, 6)),
    "quantiles": lambda: QuantileLoss()(X(4, 3), X(4)),
    "samples": samples,
    "samples_scaled": lambda: samples(X(5).abs()),
}
