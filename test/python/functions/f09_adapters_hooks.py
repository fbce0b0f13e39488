import functools
import math
from collections import OrderedDict
from typing import Callable, Dict

import torch
import torch.nn as nn
import torch.nn.functional as F


class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, r: int = 2, alpha: int = 4, dropout: float = 0.0):
        super().__init__()
        self.base = base
        self.base.weight.requires_grad_(False)
        self.lora_A = nn.Linear(base.in_features, r, bias=False)
        self.lora_B = nn.Linear(r, base.out_features, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.scaling = alpha / r
        nn.init.kaiming_uniform_(self.lora_A.weight, a=math.sqrt(5))
        nn.init.zeros_(self.lora_B.weight)

    def merged_weight(self):
        return self.base.weight + self.scaling * (self.lora_B.weight @ self.lora_A.weight)

    def forward(self, x):
        return self.base(x) + self.lora_B(self.lora_A(self.dropout(x))) * self.scaling


class LoRAParam(nn.Module):
    def __init__(self, base, r=2):
        super().__init__()
        self.base = base
        self.lora_A = nn.Parameter(torch.zeros(r, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.normal_(self.lora_A, std=0.02)

    def forward(self, x):
        delta = F.linear(F.linear(x, self.lora_A), self.lora_B)  # raises
        return self.base(x) + delta


def _inject(model: nn.Module, wrap: Callable, match=lambda name: True):
    for name, child in list(model.named_children()):
        if isinstance(child, nn.Linear) and match(name):
            setattr(model, name, wrap(child))
        else:
            _inject(child, wrap, match)
    return model


def _mlp():
    return nn.Sequential(OrderedDict([("up", nn.Linear(6, 8)), ("act", nn.GELU()), ("down", nn.Linear(8, 6))]))


def lora_injected_then_moved():
    model = _inject(_mlp(), LoRALinear)
    model.to("cuda")
    trainable = [p for n, p in model.named_parameters() if "lora_" in n]
    optimizer = torch.optim.AdamW(trainable, lr=1e-3)
    loss = model(torch.randn(4, 6, device="cuda")).pow(2).mean()
    loss.backward()
    optimizer.step()


def lora_injected_after_the_move():
    model = _mlp().to("cuda")
    model = _inject(model, LoRAParam, match=lambda name: name == "down")
    trainable = [p for n, p in model.named_parameters() if "lora_" in n]
    optimizer = torch.optim.AdamW(trainable, lr=1e-3)
    loss = model(torch.randn(4, 6, device="cuda")).pow(2).mean()
    loss.backward()
    optimizer.step()


def lora_injected_per_layer_device():
    model = _mlp()
    model.up.to("cuda:0")
    model.down.to("cuda:1")
    _inject(model, lambda base: LoRALinear(base).to(base.weight.device))
    h = model.act(model.up(torch.randn(2, 6, device="cuda:0")))
    return model.down(h.to("cuda:1"))


def merge_lora_state_dict():
    layer = nn.Linear(6, 8).to("cuda")
    buf = {"up.weight": torch.randn(8, 2), "down.weight": torch.randn(2, 6), "alpha": torch.tensor(2.0)}
    up, down = buf["up.weight"], buf["down.weight"]
    scale = buf["alpha"] / down.size(0)
    with torch.no_grad():
        weight = layer.weight
        weight = weight + scale * (up @ down)  # raises
        layer.weight = nn.Parameter(weight)


def merge_lora_in_place():
    layer = nn.Linear(6, 8).to("cuda")
    state = {"up.weight": torch.randn(8, 2), "down.weight": torch.randn(2, 6), "alpha": torch.tensor(2.0)}
    state = {k: v.to(layer.weight.device, layer.weight.dtype) for k, v in state.items()}
    scale = state["alpha"] / state["down.weight"].shape[0]
    layer.weight.data += scale * (state["up.weight"] @ state["down.weight"])
    return layer(torch.randn(1, 6).cuda())


def collect_activations_with_hooks():
    model = _mlp().to("cuda:0")
    activations: Dict[str, torch.Tensor] = {}

    def save(name):
        def hook(module, inputs, output):
            activations[name] = output.detach().cpu()

        return hook

    handles = [m.register_forward_hook(save(n)) for n, m in model.named_children()]
    model(torch.randn(4, 6, device="cuda:0"))
    for h in handles:
        h.remove()
    return {k: v.numpy().mean() for k, v in activations.items()}


def running_mean_of_activations():
    model = _mlp().to("cuda:0")
    stats = {n: torch.zeros(m.out_features) for n, m in model.named_children() if isinstance(m, nn.Linear)}

    def track(name):
        def hook(module, inputs, output):
            stats[name] = 0.9 * stats[name] + 0.1 * output.detach().mean(0)  # raises

        return hook

    for n in stats:
        getattr(model, n).register_forward_hook(track(n))
    model(torch.randn(4, 6, device="cuda:0"))
    return stats


def edit_one_layer_with_a_delta():
    layers = nn.ModuleList(nn.Linear(6, 6).to(f"cuda:{i}") for i in range(4))
    hparams = {"layer": 2, "device": 0}
    delta = torch.zeros(6, requires_grad=True, device=f"cuda:{hparams['device']}")
    target_init = None

    def edit_output_fn(module, inputs, output):
        nonlocal target_init
        if target_init is None:
            target_init = output[0].detach().clone()
        output = output.clone()
        output[0] = output[0] + delta  # raises
        return output

    layers[hparams["layer"]].register_forward_hook(edit_output_fn)
    x = torch.randn(2, 6, device="cuda:0")
    for i, layer in enumerate(layers):
        x = layer(x.to(f"cuda:{i}"))
    x.sum().backward()
    return delta.grad


def edit_one_layer_on_its_device():
    layers = nn.ModuleList(nn.Linear(6, 6).to(f"cuda:{i}") for i in range(4))
    target = layers[2]
    delta = torch.zeros(6, requires_grad=True, device=next(target.parameters()).device)
    target.register_forward_hook(lambda mod, inp, out: out + delta)
    x = torch.randn(2, 6, device="cuda:0")
    for i, layer in enumerate(layers):
        x = layer(x.to(f"cuda:{i}"))
    x.sum().backward()
    return delta.grad.cpu()


@functools.lru_cache(maxsize=None)
def _grid(h, w, device):
    ys, xs = torch.meshgrid(torch.arange(h, device=device), torch.arange(w, device=device), indexing="ij")
    return torch.stack((xs, ys), 2).float()


@functools.lru_cache(maxsize=None)
def _coords(h, w):
    ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    return torch.stack((xs, ys), 2).float()


def cached_grid_per_device():
    total = 0
    for dev in ("cuda:0", "cuda:1", "cpu"):
        pred = torch.rand(2, 4, 4, 2, device=dev)
        total += ((pred.sigmoid() * 2 - 0.5 + _grid(4, 4, pred.device)) * 8).sum().item()
    return total


def cached_coords():
    pred = torch.rand(2, 4, 4, 2).cuda()
    return (pred.sigmoid() * 2 - 0.5 + _coords(4, 4)) * 8  # raises


class Detect(nn.Module):
    stride = None

    def __init__(self, nc=2, ch=(4, 4)):
        super().__init__()
        self.nl = len(ch)
        self.grid = [torch.zeros(1)] * self.nl
        self.m = nn.ModuleList(nn.Conv2d(x, nc + 2, 1) for x in ch)
        self.stride = torch.tensor([8.0, 16.0])

    def forward(self, x):
        z = []
        for i in range(self.nl):
            y = self.m[i](x[i]).permute(0, 2, 3, 1)
            ny, nx = y.shape[1:3]
            if self.grid[i].shape[:2] != y.shape[1:3]:
                self.grid[i] = _coords(ny, nx).to(y.device)
            y[..., :2] = (y[..., :2].sigmoid() + self.grid[i]) * self.stride[i]
            z.append(y.reshape(y.size(0), -1, y.size(-1)))
        return torch.cat(z, 1)


def yolo_head_inference():
    head = Detect().cuda().eval()
    with torch.no_grad():
        return head([torch.rand(1, 4, 4, 4).cuda(), torch.rand(1, 4, 2, 2).cuda()]).shape


class FeatureBank:
    """Keeps the features of the last batches, on the CPU to save memory."""

    def __init__(self, size=8, dim=4):
        self.feats = torch.zeros(size, dim)
        self.ptr = 0
        self.size = size

    def enqueue(self, f):
        n = f.size(0)
        self.feats[self.ptr : self.ptr + n] = f.detach()
        self.ptr = (self.ptr + n) % self.size

    def logits(self, q, t=0.2):
        return q @ self.feats.t() / t  # raises


def memory_bank_negatives():
    enc = nn.Linear(6, 4).cuda()
    bank = FeatureBank()
    for _ in range(2):
        q = F.normalize(enc(torch.randn(4, 6).cuda()), dim=1)
        bank.enqueue(q)
    return bank.logits(q).logsumexp(1).mean()
