import torch
import sequence_components as S

C = "cuda:0"


def ints(high, *shape, low=3):
    return torch.randint(low, high, shape, device=C)


def att(first_padding=None, second_padding=None, **options):
    m = S.CachedAttention(8).to(C)
    state = {}
    m(torch.randn(2, 3, 8, device=C), padding=first_padding, incremental_state=state)
    return m, state, m(torch.randn(2, 1, 8, device=C), padding=second_padding, incremental_state=state)


def pad(columns):
    return torch.zeros(2, columns, dtype=torch.bool, device=C)


def pool():
    p = S.HypothesisPool(3, 2)
    tokens = ints(9, 6, 5)
    p.finalize(3, torch.tensor([0, 1, 2], device=C), tokens, torch.randn(3, device=C))
    return p, tokens


def lp(*shape):
    return torch.randn(*shape, device=C).log_softmax(-1)



def reorder():
    m, state, _ = att(pad(3))
    m.reorder(state, torch.tensor([1, 0], device=C))


def keep_best():
    m, state, _ = att()
    m.keep_best(state, torch.randn(2, device=C), 1)


T = torch.tensor([[3, 4, 3, 4, 3], [5, 6, 5, 7, 5]])
CALLS = {
    "sin_short": lambda: S.SinusoidalPositions(8, 1).to(C)(ints(9, 2, 6)),
    "sin_long": lambda: S.SinusoidalPositions(8, 1).to(C)(ints(9, 2, 60)),
    "bias": lambda: S.RelativeBias(2).to(C)(torch.randn(1, 2, 5, 5, device=C)),
    "bias_row": lambda: S.RelativeBias(2).to(C).row(torch.randn(1, 2, 5, device=C), 4),
    "att_causal": lambda: S.CachedAttention(8).to(C)(torch.randn(2, 3, 8, device=C), causal=True),
    "att_prev": lambda: att(pad(3)),
    "att_both": lambda: att(pad(3), pad(1)),
    "att_current": lambda: att(None, pad(1)),
    "att_reorder": reorder,
    "keep_best": keep_best,
    "beam": lambda: S.BeamSearch(9).step(0, lp(2, 2, 9), torch.zeros(2, 2, device=C)),
    "beam1": lambda: S.BeamSearch(9).step(1, lp(2, 2, 9), torch.zeros(2, 2, device=C)),
    "sibling": lambda: S.SiblingSearch(9).step(1, lp(2, 2, 9), torch.zeros(2, 2, device=C)),
    "block": lambda: S.NGramBlock(2)(T.to(C), lp(2, 9)),
    "soften": lambda: S.NGramBlock(2).soften(T.to(C), lp(2, 9)),
    "pool_shrink": lambda: (lambda p: p[0].shrink(p[1]))(pool()),
    "pool_silence": lambda: pool()[0].silence(lp(6, 9)),
    "span": lambda: S.SpanNoise(0.4, 2)(ints(9, 12)),
    "shuffle": lambda: S.ShuffleNoise(3)(ints(9, 2, 6), torch.tensor([6, 4], device=C)),
    "drop": lambda: S.ShuffleNoise(3).drop(ints(9, 2, 6), torch.tensor([6, 4], device=C)),
    "diffuse": lambda: S.SCHEDULES["sqrt"](20).diffuse(torch.randn(2, 3, 4, device=C), torch.tensor([1, 9], device=C)),
    "werror": lambda: S.SqrtSchedule(20).weighted_error(*torch.randn(2, 2, 3, device=C), torch.tensor([1, 9], device=C)),
    "recover": lambda: S.SqrtSchedule(20).recover(*torch.randn(2, 2, 3, device=C), torch.tensor([1, 9], device=C)),
    "smoothed": lambda: S.LabelSmoothed(priors=[0.25] * 4).to(C)(torch.randn(2, 3, 4, device=C), ints(4, 2, 3, low=0)),
    "bucketed": lambda: S.BucketedCriterion().to(C)(torch.randn(2, 3, 4, device=C), ints(4, 2, 3, low=0)),
    "guided": lambda: S.GuidedAttentionCriterion().to(C)(
        torch.rand(2, 4, 5, device=C), torch.tensor([5, 3], device=C), torch.tensor([4, 2], device=C)),
    "peak": lambda: S.GuidedAttentionCriterion().to(C).peak(torch.rand(2, 4, 5, device=C)),
}
