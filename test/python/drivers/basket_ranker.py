import torch
from basket_ranker import *

D = "cuda"
H = [[1, 2, 3, 4], [5, 6], [7, 1, 2]]


def batch():
    s = Sessions(H)
    return collate([s[i] for i in next(iter(ByLength(torch.tensor([4, 2, 3], device=D), 3)))]).to(D)


M = lambda **o: SessionModel(9, **o).to(D)
FA = lambda: Factors(3, 9).to(D)
U = lambda: torch.tensor([0, 1, 2], device=D)
S = lambda: torch.randn(3, 9, device=D)
T = lambda: torch.tensor([1, 4, 8], device=D)
N = lambda: Negatives(Sessions(H).popularity(9))


def judge(j, *a):
    j.update(S(), T(), *a)
    return j.ranks.means(), j.coverage(9)


SEG = torch.tensor([0, 1, 1])
CALLS = {
    "last": lambda: last_of(torch.rand(3, 4, 2, device=D), T().clamp(max=4)),
    "last gather": lambda: last_by_gather(torch.rand(3, 4, 2, device=D), T().clamp(max=4)),
    "model": lambda: M()(batch()),
    "model pooled": lambda: M(pool=pooled)(batch()),
    "with": lambda: M().with_seen(batch()),
    "without": lambda: M().without_seen(batch()),
    "factors": lambda: (FA()(U(), T()), FA().all_items(U()), FA().similar_to(2)),
    "biased": lambda: FA().biased(U(), T()),
    "similar": lambda: FA().similar(2),
    "corrected": lambda: N().corrected(S()[:, 0], T()),
    "corrected on": lambda: N().corrected_on(S()[:, 0], T()),
    "sampled": lambda: LOSSES["sampled"](S(), T(), N()),
    "ranking": lambda: LOSSES["ranking"](S(), T(), N()),
    "full": lambda: LOSSES["full"](S(), T(), N()),
    "in batch": lambda: in_batch_loss(torch.rand(3, 4, device=D), torch.rand(3, 4, device=D), T()),
    "diverse": lambda: diverse(S()[0], torch.rand(9, 4, device=D), 3),
    "diverse scores": lambda: diverse_scores(S()[0], torch.rand(9, 4, device=D), 3),
    "judge": lambda: judge(Judge()),
    "gains": lambda: Judge().gains(S(), T()),
    "segment": lambda: judge(BySegment(SEG), U()),
    "worst": lambda: BySegment(SEG).worst(S(), T(), U()),
    "exported": lambda: exported(FA(), [1, 3]),
    "exported half": lambda: exported_half(FA(), [1, 3]),
}
