import math
import re

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

NF4_CODE = torch.tensor([-1.0, -0.6962, -0.5251, -0.3949, -0.2844, -0.1848, -0.0911, 0.0,
                         0.0796, 0.1609, 0.2461, 0.3379, 0.4407, 0.5626, 0.7230, 1.0])


def quantize_blockwise(w, block=4):
    flat = w.reshape(-1, block)
    absmax = flat.abs().amax(dim=1, keepdim=True).clamp(min=1e-8)
    code = NF4_CODE.to(w.device, w.dtype)
    idx = ((flat / absmax).unsqueeze(-1) - code).abs().argmin(-1)
    return idx, absmax


def dequantize_blockwise(idx, absmax, shape):
    return (NF4_CODE[idx] * absmax).view(shape)  # raises


class LoRALayer(nn.Module):
    def __init__(self, base, rank=4, alpha=8.0, dropout=0.0):
        super().__init__()
        self.base = base
        self.scaling = alpha / rank
        self.lora_A = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank))
        self.dropout = nn.Dropout(dropout)
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        base.weight.requires_grad_(False)

    def delta(self):
        return self.scaling * self.lora_B @ self.lora_A

    def forward(self, x):
        hidden = F.linear(self.dropout(x), self.lora_A)  # raises
        return self.base(x) + F.linear(hidden, self.lora_B) * self.scaling

    @torch.no_grad()
    def merge(self):
        self.base.weight += self.delta().to(self.base.weight)
        return self.base

    @torch.no_grad()
    def init_from_svd(self):
        rank = self.lora_A.size(0)
        U, S, Vh = torch.linalg.svd(self.base.weight, full_matrices=False)
        self.lora_A.copy_(S[:rank].sqrt()[:, None] * Vh[:rank])
        self.lora_B.copy_(U[:, :rank] * S[:rank].sqrt() / self.scaling)
        self.base.weight.sub_(self.delta().to(self.base.weight))

    def orthogonality(self):
        gram = self.lora_A @ self.lora_A.t()
        eye = torch.eye(gram.size(0), dtype=gram.dtype)
        return (gram - eye).pow(2).sum()  # raises

    def identity_gap(self):
        gram = self.lora_B.t() @ self.lora_B
        return (gram - torch.eye(gram.size(0)).type_as(gram)).norm()


class IA3(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.gain = nn.Parameter(torch.ones(base.out_features))

    def forward(self, x):
        return self.base(x) * self.gain


def _replace(model, pattern, factory):
    for name, child in list(model.named_modules()):
        if isinstance(child, nn.Linear) and re.search(pattern, name):
            parent, _, attr = name.rpartition(".")
            setattr(model.get_submodule(parent) if parent else model, attr, factory(child))
    return model


def inject_lora(model, pattern=".*", rank=4):
    return _replace(model, pattern, lambda lin: LoRALayer(lin, rank=rank))


def inject_ia3(model, pattern=".*"):
    return _replace(model, pattern, lambda lin: IA3(lin).to(lin.weight.device))


def lora_state(model):
    return {k: v.cpu() for k, v in model.state_dict().items() if "lora_" in k}


def export_numpy(model):
    return {k: np.asarray(p.detach()) for k, p in model.named_parameters() if "lora_" in k}  # raises


@torch.no_grad()
def load_lora(model, path):
    state = torch.load(path, map_location="cpu")
    for name, param in model.named_parameters():
        if name in state:
            param.copy_(state[name])
    return model


@torch.no_grad()
def merge_lora_file(model, path, scaling=2.0):
    state = torch.load(path, map_location="cpu")
    for key in [k for k in state if k.endswith("lora_A")]:
        prefix = key[: -len(".lora_A")]
        update = state[prefix + ".lora_B"] @ state[key]
        model.get_submodule(prefix).weight.add_(update, alpha=scaling)  # raises
    return model


class PrefixEncoder(nn.Module):
    def __init__(self, n_tokens, dim):
        super().__init__()
        self.n_tokens = n_tokens
        self.embedding = nn.Embedding(n_tokens, dim)
        self.tokens = torch.arange(n_tokens).long()

    def prompt(self, batch_size):
        return self.embedding(self.tokens.unsqueeze(0).expand(batch_size, -1))  # raises

    def prompt_weight(self, batch_size):
        return self.embedding.weight.unsqueeze(0).expand(batch_size, -1, -1)

    def forward(self, x, mask=None):
        x = torch.cat([self.prompt_weight(x.size(0)), x], dim=1)
        if mask is not None:
            prefix_mask = torch.ones(x.size(0), self.n_tokens, dtype=mask.dtype)
            mask = torch.cat([prefix_mask, mask], dim=1)  # raises
        return x, mask


class GatedAdapters(nn.Module):
    def __init__(self, dim, n, bottleneck=4):
        super().__init__()
        self.down = nn.ModuleList(nn.Linear(dim, bottleneck) for _ in range(n))
        self.up = nn.ModuleList(nn.Linear(bottleneck, dim) for _ in range(n))
        self.gates = [nn.Parameter(torch.full((1,), 0.1)) for _ in range(n)]

    def forward(self, x, task):
        h = self.up[task](F.gelu(self.down[task](x)))
        return x + torch.tanh(self.gates[task]) * h  # raises
