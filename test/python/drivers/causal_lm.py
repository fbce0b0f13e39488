import torch
import causal_lm as L

D = "cuda:0"


def ids(batch=2, length=6):
    return torch.randint(3, 40, (batch, length), device=D)


def model(**kwargs):
    return L.CausalLM(L.CausalLMConfig(**kwargs)).to(D)


def rope(kind, *lengths):
    module = L.RotaryEmbedding(L.CausalLMConfig(rope_type=kind)).to(D)
    for n in lengths:
        module(torch.zeros(1, n, 8, device=D), torch.arange(n, device=D)[None])


def cached(cache, positions=False):
    for step in range(2):
        state = torch.randn(2, 4, 3, 8, device=D)
        cache.update(state, state, 0, torch.arange(3, device=D) + 3 * step)
    return cache


def cu():
    return torch.tensor([0, 3, 5, 9], device=D)


def process(processor):
    return processor(ids(), torch.randn(2, 40, device=D))


def beam(**kw):
    return L.BeamScorer(2, 3, **kw).step(torch.randn(6, 40, device=D).log_softmax(-1), torch.zeros(6, device=D))


def logits(n=9, batch=1):
    return torch.randn(batch, n, 40, device=D, requires_grad=True)


CALLS = {
    "rope_default": lambda: rope("default", 8, 30),
    "rope_dynamic_grow": lambda: rope("dynamic", 8, 30),
    "rope_dynamic_shrink": lambda: rope("dynamic", 8, 30, 8),
    "rope_yarn_short": lambda: rope("yarn", 8),
    "rope_yarn_grow": lambda: rope("yarn", 30),
    "sinusoid_plain": lambda: L.SinusoidalPositions(L.CausalLMConfig(), residual=False).to(D)(torch.randn(2, 5, 32, device=D)),
    "sinusoid_residual": lambda: L.SinusoidalPositions(L.CausalLMConfig()).to(D)(torch.randn(2, 5, 32, device=D)),
    "alibi": lambda: L.AlibiBias(4).to(D)(torch.ones(2, 5, device=D)),
    "alibi_learned": lambda: L.AlibiBias(4, learned=True).to(D)(torch.ones(2, 5, device=D)),
    "mask_causal": lambda: L.AttentionMaskConverter().to_4d(torch.ones(2, 7, device=D), 5, torch.float32),
    "model_sliding": lambda: model(sliding_window=3)(ids()),
    "document_ids": lambda: L.document_ids(cu()),
    "packed_positions": lambda: L.packed_positions(cu()),
    "cache_reorder": lambda: cached(L.Cache()).reorder(torch.tensor([1, 0], device=D)),
    "cache_offloaded": lambda: cached(L.OffloadedCache()).reorder(torch.tensor([1, 0], device=D)),
    "cache_quantized": lambda: cached(L.QuantizedCache()),
    "cache_static": lambda: cached(L.StaticCache(10)),
    "sequence_bias": lambda: process(L.SequenceBiasProcessor({3: 1.0, 5: -2.0})),
    "bad_words": lambda: process(L.NoBadWordsProcessor([3, 7])),
    "suppress": lambda: process(L.SuppressTokensProcessor([3, 7])),
    "suppress_begin": lambda: process(L.SuppressTokensProcessor([3, 7], begin_index=6)),
    "repetition": lambda: process(L.RepetitionPenaltyProcessor(1.3)),
    "watermark": lambda: process(L.WatermarkProcessor()),
    "stopping": lambda: L.StoppingCriteriaList([L.EosCriterion(2), L.MaxLengthCriterion(6)])(ids()),
    "beam": beam,
    "beam_ungrouped": lambda: beam(group_offset=False),
    "loss_weighted": lambda: L.ClassWeightedLoss([1.0] * 40)(logits(), ids(1, 9)),
    "loss_packed": lambda: L.PackedLoss()(logits(), ids(1, 9), cu_seqlens=cu()),
    "loss_multi_token": lambda: L.MultiTokenLoss()([logits(), logits()], ids(1, 9)).backward(),
    "generate": lambda: model().generate(ids(), processors=[L.RepetitionPenaltyProcessor(1.2)], cache=L.OffloadedCache()),
}
