import torch
import torch.nn as nn
import torch.nn.functional as F


class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, rank: int, alpha: float = 4.0):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.scaling = torch.tensor(alpha / rank)
        self.lora_a = nn.Parameter(torch.randn(rank, base.in_features) * 0.02)
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        hidden = F.linear(x, self.lora_a)  # raises
        return self.base(x) + F.linear(hidden, self.lora_b) * self.scaling

    def merged(self):
        self.base.weight.data += (self.lora_b @ self.lora_a).detach() * self.scaling
        return self.base


def _parents(model, wanted):
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if wanted(name, child):
                yield module, name, child


def inject_lora(model, rank, names=("qkv", "proj")):
    for p in model.parameters():
        p.requires_grad_(False)
    for parent, name, child in _parents(model, lambda n, c: n in names and isinstance(c, nn.Linear)):
        setattr(parent, name, LoRALinear(child, rank))
    return model


def merge_lora(model):
    for parent, name, child in _parents(model, lambda n, c: isinstance(c, LoRALinear)):
        setattr(parent, name, child.merged())


def lora_parameters(model):
    return [p for n, p in model.named_parameters() if "lora_" in n]
