import torch
from cached_decoder import *

D = "cuda"
X = lambda t=4: torch.randn(2, t, 8, device=D)
Q = lambda t=4, d=D: torch.randn(2, 2, t, 4, device=d)
TOK = lambda: torch.tensor([[1, 2, 3], [4, 5, 6]], device=D)
LOG = lambda: torch.randn(2, 11, device=D)


def rot(n=4, c=Rotary, move=True):
    return c(4).to(D)(Q(n))


def kv():
    c = KeyValues()
    c.update(0, Q(), Q())
    c.update(0, Q(1), Q(1))
    c.reorder(torch.tensor([1, 0]))
    return len(c)


def kv_off():
    c = KeyValues()
    c.update(0, Q(), Q())
    return Decoder().to(D).resumed(TOK(), c.offload())


def fixed(device, write=False):
    c = FixedKeyValues(1, 2, 2, 8, 4, device)
    return (c.write if write else c.update)(0, Q(), Q())


def dec(**o):
    m = Decoder(**o).to(D)
    m.ban(3)
    return m


G = lambda p=(): Generator(dec(), p)
CALLS = {
    "rotary": lambda: rot(),
    "rotary grown": lambda: rot(20),
    "rotary each": lambda: rot(20, RotaryEach),
    "slopes": lambda: Slopes(2).to(D)(Q(), Q()),
    "buckets": lambda: Buckets(2).to(D)(Q(), Q()),
    "shared": lambda: SharedBuckets(2).to(D)(Q(), Q()),
    "kv": kv,
    "resumed": kv_off,
    "fixed": lambda: fixed(None),
    "fixed there": lambda: fixed(D),
    "fixed write": lambda: fixed(None, True),
    "attention": lambda: Attention(8, 2).to(D)(X()),
    "attention shared": lambda: Attention(8, 2, 0, SharedBuckets(2)).to(D)(X()),
    "plain": lambda: PlainAttention(8, 2).to(D)(X()),
    "window": lambda: WindowAttention(8, 2).to(D)(X()),
    "with global": lambda: WindowAttention(8, 2).to(D).with_global(Q(), Q(), torch.tensor([True, False, False, False], device=D)),
    "top": lambda: top_keys(Q(), 2),
    "block": lambda: block_scores(Q(), Q(), 2),
    "block table": lambda: block_table(Q(), Q(), 2),
    "decoder": lambda: dec(position=SharedBuckets)(TOK()),
    "greedy": lambda: G([temperature(0.7), repetition(1.2), forced(5, 11)]).greedy(TOK()),
    "sampled": lambda: G().sampled(TOK(), torch.Generator()),
    "cached": lambda: G().cached(TOK()),
    "beams": lambda: G().beams(TOK()[:1]),
    "suppressed": lambda: G([suppressed([1, 2])]).greedy(TOK()),
    "nucleus": lambda: G([nucleus(0.9)]).greedy(TOK()),
}
