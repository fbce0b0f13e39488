import torch

import closures as C

D = torch.device("cuda:0")
LOGITS, TARGET = torch.randn(4, 3, device=D), torch.zeros(4, dtype=torch.long, device=D)

CALLS = {
    "positions": lambda: C.positions(LOGITS),
    "weighted": lambda: C.weighted_loss(3)(LOGITS, TARGET),
    "weighted_beside": lambda: C.weighted_loss_beside(3)(LOGITS, TARGET),
    "counted": lambda: [each(LOGITS) for each in [C.counted(4)] for _ in range(2)],
    "pipeline": lambda: C.pipeline([torch.relu, torch.tanh], 2.0)(LOGITS),
    "schedule": lambda: C.Schedule(4).at(1)(LOGITS, torch.randn(4, 3, device=D)),
}
