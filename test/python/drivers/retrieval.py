import torch
import torch.nn.functional as F

import retrieval as L

D = "cuda:0"
C = L.RecommenderConfig()


def r(*shape):
    return F.normalize(torch.randn(shape, device=D), dim=-1)


def labels():
    return torch.tensor([0, 0, 1, 1, 2, 2], device=D)


def metric(loss, miner=None):
    embeddings = r(6, 8).requires_grad_()
    loss.to(D)(embeddings, labels(), miner and miner(embeddings, labels()))["loss"].backward()


def memory():
    module = L.CrossBatchMemory(L.SupervisedContrastive(), 8).to(D)
    for _ in range(3):
        module(r(6, 8), labels())


def queue(cls):
    module = cls(8).to(D)
    module(r(4, 8), r(4, 8))
    module(r(4, 8), r(4, 8))


def pairs():
    return torch.tensor([0, 1, 2], device=D), torch.tensor([1, 3, 5], device=D)


def bpr(cls=L.Recommender, sampler=None):
    cls(C, sampler).to(D).bpr(*pairs()).backward()


def sequence(cls):
    cls(C).to(D).encode(torch.randint(9, (2, 5), device=D))


def softmax(corrected):
    L.SampledSoftmax(corrected).to(D)(r(4, 8), r(4, 8), torch.tensor([1, 1, 3, 4], device=D))


def ranking(cls):
    each = cls()
    for _ in range(2):
        each.update(torch.rand(4, 6, device=D), torch.randint(2, (4, 6), device=D))
    each.compute()


CALLS = {
    "triplet_all": lambda: metric(L.TripletLoss()),
    "triplet_hard": lambda: metric(L.TripletLoss(), L.HardMiner()),
    "triplet_combined": lambda: metric(L.TripletLoss(), L.CombinedMiner([L.HardMiner(), L.EasyMiner()])),
    "supcon": lambda: metric(L.SupervisedContrastive()),
    "two_view": lambda: metric(L.TwoViewContrastive()),
    "arcface": lambda: metric(L.ArcFace(3, 8)),
    "cosface": lambda: metric(L.CosFace(3, 8)),
    "center": lambda: metric(L.CenterLoss(3, 8)),
    "soft_triple": lambda: metric(L.SoftTriple(3, 8)),
    "memory": memory,
    "queue": lambda: queue(L.MomentumQueue),
    "queue_soft": lambda: queue(L.SoftLabelQueue),
    "bank": lambda: queue(L.InstanceBank),
    "sampler": lambda: list(L.ClassBalancedSampler(labels())),
    "sampler_fast": lambda: list(L.FastBalancedSampler(labels())),
    "bpr_rejecting": lambda: bpr(),
    "bpr_popular": lambda: bpr(sampler=L.NegativeSampler([3] * 9)),
    "graph": lambda: bpr(L.GraphRecommender),
    "recommend": lambda: L.Recommender(C).to(D).recommend(pairs()[0], seen=[[1], [3, 2], []]),
    "sequential": lambda: sequence(L.SequentialRecommender),
    "sequential_reversed": lambda: sequence(L.ReversedSequentialRecommender),
    "fields": lambda: L.FieldRecommender([3, 4]).to(D)(torch.tensor([[0, 1], [2, 3]], device=D)),
    "softmax_corrected": lambda: softmax(True),
    "softmax_plain": lambda: softmax(False),
    "whitening": lambda: L.Whitening().fit(r(10, 4)),
    "spherical": lambda: L.SphericalKMeans(3).fit(r(10, 4)),
    "quantizer": lambda: L.ProductQuantizer().fit(r(10, 4)).search(r(4)),
    "quantizer_compact": lambda: L.ProductQuantizer(compact=True).fit(r(10, 4)).search(r(4)),
    "flat": lambda: (L.FlatIndex(r(10, 4)).search(r(2, 4)), ranking(L.RankingMetric), ranking(L.ReciprocalRank)),
    "ndcg": lambda: ranking(L.NormalizedGain),
}
