import torch
import l1_masks_positions as m
D = "cuda:0"
L = lambda: torch.tensor([3, 5], device=D)
X = lambda *s: torch.randn(*s, device=D)
CALLS = {
    "lengths_to_padding_mask": lambda: m.lengths_to_padding_mask(L()),
    "make_pad_mask": lambda: (m.make_pad_mask(L()), m.make_pad_mask(L(), X(2, 5, 4))),
    "lengths_to_mask": lambda: m.lengths_to_mask(L()),
    "masked_mean": lambda: m.masked_mean(X(2, 5, 4), L()),
    "masked_max": lambda: m.masked_max(X(2, 5, 4), L()),
    "causal_mask": lambda: m.causal_mask(X(2, 5, 4)),
    "Decoder": lambda: m.Decoder().to(D)(X(5, 2, 8)),
    "StreamingDecoder": lambda: m.StreamingDecoder().to(D)(X(2, 5, 8)),
    "SinusoidalPositionalEmbedding": lambda: m.SinusoidalPositionalEmbedding(8).to(D)(torch.randint(0, 5, (2, 6), device=D)),
    "TimestepTable": lambda: m.TimestepTable(8).to(D)(torch.tensor([1, 3], device=D)),
    "timestep_embedding": lambda: m.timestep_embedding(torch.tensor([1, 3], device=D), 8),
    "alibi_bias": lambda: m.alibi_bias(X(1, 2, 4, 4)),
    "alibi_bias_cached": lambda: m.alibi_bias_cached(X(1, 2, 4, 4)),
    "apply_rotary": lambda: m.apply_rotary(X(1, 2, 4, 8)),
    "apply_rotary positions": lambda: m.apply_rotary(X(1, 2, 4, 8), torch.arange(4, device=D)),
    "extend_attention_mask": lambda: m.extend_attention_mask(None, X(2, 5, 4)),
    "prepend_prefix_mask": lambda: m.prepend_prefix_mask(torch.ones(2, 5, device=D), 3),
    "expand_for_beams": lambda: m.expand_for_beams(torch.ones(2, 5, device=D), 3),
}
