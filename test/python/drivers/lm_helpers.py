from lm_helpers import *
import torch
from torch import nn
D = "cuda:0"
cfg = SamplingConfig(temperature=0.7, top_k=5, top_p=0.9, logit_bias={3: 2.0}, suppress_tokens=(1, 2))


def proc(*names):
    return ProcessorList.build(names, 16, cfg)(torch.randint(16, (2, 4), device=D), torch.randn(2, 16, device=D))


def lm():
    return nn.Sequential(nn.Embedding(16, 8), nn.Linear(8, 16)).to(D)


def rm():
    return RewardModel(nn.Embedding(16, 8), 8).to(D)


def attn(cache):
    m = CachedSelfAttention(8, 2).to(D)
    m(torch.randn(2, 3, 8, device=D), cache)
    return m(torch.randn(2, 1, 8, device=D), cache)


def beam():
    c = DynamicKVCache()
    c.update(torch.randn(3, 2, 4, 4, device=D), torch.randn(3, 2, 4, 4, device=D))
    return beam_step(torch.randn(3, 16, device=D).log_softmax(-1), torch.zeros(3, device=D), c)


def reorder():
    c = DynamicKVCache()
    c.update(torch.randn(3, 2, 4, 4, device=D), torch.randn(3, 2, 4, 4, device=D))
    c.reorder(torch.tensor([0, 0, 1], device=D))


def packed():
    return torch.tensor([3, 2], device=D)


ids = lambda *s: torch.randint(1, 16, s, device=D)
CALLS = {
    "bias": lambda: proc("bias"),
    "others": lambda: proc("suppress"),
    "sample": lambda: Sampler(cfg)(torch.randn(2, 16, device=D)),
    "sample_seed": lambda: Sampler(SamplingConfig(seed=1))(torch.randn(2, 16, device=D)),
    "greedy": lambda: Sampler(SamplingConfig(temperature=0))(torch.randn(2, 16, device=D)),
    "stop": lambda: StopOnTokens([2, 3])(ids(2, 4)),
    "attn_none": lambda: attn(None),
    "attn_dynamic": lambda: attn(DynamicKVCache()),
    "attn_static": lambda: attn(StaticKVCache(2, 2, 16, 4)),
    "reorder": reorder,
    "beam": beam,
    "alibi": lambda: AlibiBias(4).to(D)(2, 5),
    "position": lambda: packed_position_ids(packed()),
    "mask": lambda: packed_attention_mask(packed()),
    "logprobs": lambda: sequence_logprobs(lm(), [[1, 2, 3], [4, 5]]),
    "reward": lambda: rm().pairwise_loss(ids(2, 5), ids(2, 5), [0.5, 1.0]).backward(),
    "rank": lambda: rm().rank(ids(3, 5)),
    "gae": lambda: gae(torch.randn(2, 4, device=D), torch.randn(2, 4, device=D)),
    "two_stage": lambda: TwoStageDecoder(16, 8, ["cuda:0", "cuda:1"])(ids(2, 4)),
    "two_stage_skip": lambda: TwoStageDecoder(16, 8, ["cuda:0", "cuda:1"])(ids(2, 4), use_skip=True),
}
