import torch
from torch import nn
from generation import *

torch.manual_seed(0)
D, V = "cuda:0", 12


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.attn, self.head = nn.Embedding(V, 16), Attention(), nn.Linear(16, V)

    def forward(self, ids):
        return self.head(self.attn(self.emb(ids)))


def ids(device=D):
    return torch.randint(2, V, (3, 4), device=device)


def process(processor):
    return processor(ids(), torch.randn(3, V, device=D))


def generate(function, processors=(), **options):
    with torch.no_grad():
        return function(Model().to(D), ids(), GenerationConfig(**options), LogitsProcessorList(processors))


def stopped(criterion):
    return greedy(Model().to(D), ids(), GenerationConfig(), stop=criterion)


def automaton(advance):
    constraint = AutomatonConstraint(torch.randint(-1, 4, (4, V)))
    constraint.reset(3, D)
    process(constraint)
    if advance:
        constraint.advance(ids()[:, -1])


def attend(cache=None, **options):
    attention = Attention(**options).to(D)
    if cache == "own":
        cache = attention.make_cache(2, 8)
    elif cache == "gpu":
        cache = StaticCache(2, 2, 8, 8, device=D)
    y = attention(torch.randn(2, 3, 16, device=D), cache)
    if cache is not None:
        cache.reorder(torch.tensor([1, 0], device=D))
        y = attention(torch.randn(2, 1, 16, device=D), cache)
    return y


def two_causal():
    for device in ("cuda:0", "cuda:1"):
        Attention().to(device)(torch.randn(2, 3, 16, device=device))


def drafts(a, b):
    return accept_drafts(torch.randn(2, 3, V, device=a), torch.randn(2, 3, V, device=b), torch.randint(0, V, (2, 3), device=b))


def reordered_cache():
    cache = StaticCache(2, 2, 8, 8, device="cuda:1")
    cache.update(torch.randn(2, 2, 3, 8, device=D), torch.randn(2, 2, 3, 8, device=D))
    cache.reorder(torch.tensor([1, 0], device=D))


CALLS = {
    "repetition": lambda: process(RepetitionPenalty()),
    "top": lambda: process(TopKTopP(5, 0.9)),
    "suppress": lambda: process(SuppressTokens([3, 4])),
    "after": lambda: process(ForbidAfter(3, [4, 5])),
    "bad_words": lambda: process(NoBadWords([[3], [4, 5]], V)),
    "bias": lambda: process(LogitBias({3: 1.0}, V)),
    "prefix": lambda: process(PrefixConstrained(lambda row, sent: [2, 3])),
    "automaton": lambda: automaton(False),
    "automaton_advance": lambda: automaton(True),
    "greedy": lambda: generate(greedy, [RepetitionPenalty(), TopKTopP(5, 0.9), SuppressTokens([0], 4)]),
    "greedy_eos": lambda: stopped(EosCriterion((1, 2))),
    "greedy_length": lambda: stopped(MaxLengthCriterion(7)),
    "sample": lambda: generate(sample),
    "sample_seed": lambda: generate(sample, seed=1),
    "attend": attend,
    "attend_scaled": lambda: attend(scaled=True),
    "attend_own": lambda: attend("own"),
    "attend_gpu": lambda: attend("gpu"),
    "causal": two_causal,
    "past": lambda: reorder_past(((torch.randn(3, 2, device=D),) * 2,), [2, 0, 1]),
    "reorder": reordered_cache,
    "drafts": lambda: drafts(D, D),
    "drafts_two": lambda: drafts(D, "cuda:1"),
}
