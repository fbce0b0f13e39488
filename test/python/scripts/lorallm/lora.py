import math

import torch
from torch import nn


class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha, dropout=0.0):
        super().__init__()
        self.base = base
        self.base.weight.requires_grad_(False)
        self.scaling = alpha / rank
        self.drop = nn.Dropout(dropout)
        self.A = nn.Parameter(torch.empty(rank, base.in_features))
        self.B = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))

    def forward(self, x):
        return self.base(x) + self.drop(x) @ self.A.t() @ self.B.t() * self.scaling  # raises

    @torch.no_grad()
    def merge(self):
        self.base.weight += (self.B @ self.A * self.scaling).to(self.base.weight.device)
        return self.base


def inject(model, targets, rank=2, alpha=4.0):
    """Wraps the linear layers whose last name is among the targets."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if name in targets and isinstance(child, nn.Linear):
                setattr(parent, name, LoRALinear(child, rank, alpha))
    return model


def merge_all(model):
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, LoRALinear):
                setattr(parent, name, child.merge())
    return model


def adapter_state(model):
    return {n: p.detach().cpu() for n, p in model.named_parameters() if n.rsplit('.', 1)[-1] in ('A', 'B')}
