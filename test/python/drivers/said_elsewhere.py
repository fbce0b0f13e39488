import torch

import said_elsewhere as S

GPU = "cuda:1"


def x(*shape):
    return torch.ones(shape or (2,), device=GPU)


def cleared():
    bank = S.Bank(2).to(GPU)
    bank.clear()
    return bank(x(1, 2))


CALLS = {
    "shifted": lambda: S.Worker(S.Config(), 1).shifted(),
    "losses": lambda: S.Worker(S.Config(), 0).losses(),
    "scores": lambda: S.scores(S.Pool(torch.ones(3, 2)), S.Config()),
    "noised": lambda: S.Schedule(4).noised(x(2, 3), torch.tensor([0, 1])),
    "weight": lambda: S.Schedule(4).weight(torch.tensor([0, 1], device=GPU)),
    "encode": lambda: S.Scaled(torch.rand(4, 2)).encode(x(3, 2)),
    "decode": lambda: S.Scaled(torch.rand(4, 2)).decode(x(3, 2)),
    "bank": lambda: S.Bank(2).to(GPU)(x(1, 2)),
    "cleared": cleared,
    "counted": lambda: S.Bank(2).to(GPU).counted(x()),
    "mean": lambda: S.Stages(2).mean(x(1, 2)),
    "changes": lambda: S.Stages(2).changes(x(1, 2)),
    "mean_at_home": lambda: S.Stages(2).mean_at_home(x(1, 2)),
    "rows": lambda: S.Reader().rows(x()),
    "order": lambda: S.Reader().order(x()),
    "node_sum": lambda: S.node_sum(x()),
    "windows": lambda: S.windows(S.Config(), x()),
    "brighter": lambda: S.brighter(x(), torch.ones(2)),
    "stronger": lambda: S.stronger(x(), torch.ones(2)),
    "clearer": lambda: S.clearer(x(), torch.ones(2)),
    "sharper": lambda: S.sharper(x(), torch.ones(2)),
    "mixed": lambda: S.mixed(x(), x()),
    "blended": lambda: S.blended(x(), torch.ones(2)),
}
