import torch

import sequence_blocks as S

DEVICE = "cuda:0"


def x(length=6):
    return torch.randn(2, length, 16, device=DEVICE)


def ids(*shape, high=5):
    return torch.randint(1, high, shape, device=DEVICE)


def language_model():
    return torch.nn.Sequential(torch.nn.Embedding(5, 16), S.Attention(), torch.nn.Linear(16, 5)).to(DEVICE)


def attend(cache=None, calls=2, **kwargs):
    layer = S.Attention(**kwargs).to(DEVICE)
    for _ in range(calls):
        out = layer(x(), cache) if cache else layer(x())
    return out


def cache_like():
    return S.KeyValueCache(16, allocate=x().new_zeros)


def stateful(reset):
    decoder = S.StatefulDecoder().to(DEVICE)
    if reset:
        decoder.reset(2)
    return decoder(x()), decoder(x())


def grown():
    cache = S.GrowingCache(0)
    attend(cache)
    return cache


def rank():
    metric = S.RankMetric()
    metric(torch.rand(3, 5, device=DEVICE), ids(3))
    metric.reset()
    return metric(torch.rand(3, 5, device=DEVICE), ids(3))


def lengths():
    return torch.tensor([6, 4], device=DEVICE)


CALLS = {
    "positions": lambda: S.SinusoidalPositions(16).to(DEVICE)(x()),
    "positions_long": lambda: S.SinusoidalPositions(16).to(DEVICE)(x(11)),
    "masked_mean": lambda: S.masked_mean(x(), lengths()),
    "packed_pool": lambda: S.packed_pool(x(), [5, 3]),
    "causal": lambda: attend(),
    "rotary": lambda: attend(rotary=True),
    "alibi": lambda: attend(bias=S.ALiBi(2)),
    "buckets": lambda: attend(bias=S.BucketBias(2)),
    "clipped": lambda: attend(bias=S.ClippedEmbeddingBias(2)),
    "cache_default": lambda: attend(S.KeyValueCache(16)),
    "cache_given": lambda: attend(cache_like()),
    "cache_growing": lambda: grown().keep([1]),
    "cache_reorder": lambda: grown().reorder([1, 0]),
    "random_features": lambda: S.RandomFeatureAttention().to(DEVICE)(x()),
    "encoder": lambda: S.RecurrentEncoder().to(DEVICE)(x(), lengths()),
    "encoder_last": lambda: S.RecurrentEncoder().to(DEVICE).last(x(), lengths()),
    "stateful": lambda: stateful(False),
    "stateful_reset": lambda: stateful(True),
    "crf_score": lambda: S.LinearChainCRF(4).to(DEVICE).score(torch.randn(2, 6, 4, device=DEVICE), ids(2, 6, high=4)),
    "crf_viterbi": lambda: S.LinearChainCRF(4).to(DEVICE).viterbi(torch.randn(2, 6, 4, device=DEVICE)),
    "crf_constrained": lambda: S.LinearChainCRF(4).to(DEVICE).constrained(torch.randn(2, 6, 4, device=DEVICE), [(0, 1)]),
    "generate": lambda: S.generate(language_model(), ids(2, 3), 3, [S.repetition_penalty(1.2), S.ban_tokens([2, 3]), S.nucleus(0.9)]),
    "generate_bias": lambda: S.generate(language_model(), ids(2, 3), 3, [S.logit_bias({1: 2.0}, 5)]),
    "beam": lambda: S.beam_search(language_model(), ids(2, 3)),
    "ctc": lambda: S.ctc_objective(torch.randn(8, 2, 5, device=DEVICE).log_softmax(-1), ids(2, 3)),
    "sampling": lambda: S.scheduled_sampling(ids(2, 3), ids(2, 3), 0.5),
    "sampling_token": lambda: S.scheduled_sampling(ids(2, 3), ids(2, 3), 0.5, per_token=True),
    "perplexity": lambda: S.Perplexity()(torch.randn(3, 5, device=DEVICE), ids(3)),
    "confusion": lambda: S.TagConfusion(5)(ids(9), ids(9)),
    "rank": rank,
}
