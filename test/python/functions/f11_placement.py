import argparse
import copy
import os
from types import SimpleNamespace
from typing import Any, Dict, Optional

import torch
import torch.nn as nn
import torch.nn.functional as F


def _select_device(device="", batch_size=None):
    device = str(device).strip().lower().replace("cuda:", "")
    cpu = device == "cpu"
    cuda = not cpu and torch.cuda.is_available()
    if cuda:
        n = torch.cuda.device_count()
        if n > 1 and batch_size:
            assert batch_size % n == 0, f"batch-size {batch_size} not multiple of GPU count {n}"
        return torch.device(f"cuda:{device or 0}")
    return torch.device("cpu")


def selected_device():
    device = _select_device("2", batch_size=8)
    net = nn.Linear(4, 4).to(device)
    half = device.type != "cpu"
    img = torch.zeros((1, 4), device=device)
    out = net(img) if half else None
    return out.device.index == 2


def root_by_type_name():
    def root(mat):
        evals, evecs = torch.linalg.eigh(mat.cpu())
        evals, evecs = evals.type(mat.type()), evecs.type(mat.type())
        return evecs * evals.clamp(min=0).sqrt()

    mat = torch.eye(4, device="cuda:1") * 2
    rhs = torch.randn(4, 1, device="cuda:1")
    return root(mat).t() @ rhs  # raises


def root_by_type_as():
    def root(mat):
        evals, evecs = torch.linalg.eigh(mat.cpu())
        evals, evecs = evals.type_as(mat), evecs.type_as(mat)
        return evecs * evals.clamp(min=0).sqrt()

    mat = torch.eye(4, device="cuda:1") * 2
    rhs = torch.randn(4, 1, device="cuda:1")
    return root(mat).t() @ rhs


def offsets_with_the_current_device():
    rank = int(os.environ.get("LOCAL_RANK", 1))
    torch.cuda.set_device(rank)
    tokens = torch.randint(0, 5, (2, 3), device=f"cuda:{rank}")
    offsets = (torch.arange(0, 2) * 3).unsqueeze(1).type_as(tokens)
    lut = torch.zeros(10).cuda()
    return lut[tokens + offsets]


def offsets_without_set_device():
    rank = int(os.environ.get("LOCAL_RANK", 1))
    device = torch.device("cuda", rank)
    model = nn.Embedding(10, 4).to(device)
    tokens = torch.randint(0, 5, (2, 3)).cuda()
    return model(tokens)  # raises


class EncoderWithHelper:
    """The encoder is a plain object; only the projection is a module."""

    def __init__(self, dim=4):
        self.proj = nn.Linear(dim, dim)
        self.mean = torch.zeros(dim)
        self.device = "cpu"

    def to(self, device):
        self.proj.to(device)
        self.device = device
        return self

    def encode(self, x):
        x = x.to(self.device)
        return self.proj(x - self.mean)  # raises


def helper_object_with_a_to_method():
    enc = EncoderWithHelper().to("cuda")
    return enc.encode(torch.randn(3, 4)).cpu()


class Boxes:
    def __init__(self, tensor: torch.Tensor):
        self.tensor = tensor

    def to(self, device) -> "Boxes":
        return Boxes(self.tensor.to(device))

    def scale(self, sx, sy):
        self.tensor[:, 0::2] *= sx
        self.tensor[:, 1::2] *= sy

    @property
    def device(self):
        return self.tensor.device

    @staticmethod
    def cat(items):
        return Boxes(torch.cat([b.tensor for b in items]))


def new_object_returned_by_to():
    pred = Boxes(torch.rand(2, 4, device="cuda:0"))
    gt = Boxes(torch.rand(3, 4))
    gt.to(pred.device)
    gt.scale(2.0, 2.0)
    return torch.cdist(pred.tensor, gt.tensor, p=1)  # raises


def new_object_kept():
    pred = Boxes(torch.rand(2, 4, device="cuda:0"))
    gt = Boxes(torch.rand(3, 4))
    gt = gt.to(pred.device)
    gt.scale(2.0, 2.0)
    return Boxes.cat([pred, gt]).tensor.sum().item()


class Batch(dict):
    """Moves its tensors in place, as BatchEncoding does."""

    def to(self, device):
        for k, v in self.items():
            if isinstance(v, torch.Tensor):
                self[k] = v.to(device)
        return self


def batch_moved_in_place():
    net = nn.Embedding(10, 4).cuda()
    batch = Batch(input_ids=torch.ones(2, 3, dtype=torch.long), text=["a", "b"])
    batch.to("cuda")
    return net(batch["input_ids"]).mean().item()


class CPUAdamOffload:
    """Keeps fp32 master copies and gradients on the CPU, as an offloading optimizer does."""

    def __init__(self, params, lr=0.1, clip=1.0, offload="cpu"):
        self.params = list(params)
        self.master = [p.detach().clone().to(offload) for p in self.params]
        self.lr, self.clip = lr, clip
        self.grads = [torch.zeros_like(m) for m in self.master]

    def _norm(self):
        return torch.norm(torch.stack([p.grad.norm() for p in self.params]))

    def reduce(self):
        for g, p in zip(self.grads, self.params):
            g.copy_(p.grad)

    def step(self):
        self.reduce()
        total = self._norm()
        clip = ((total / 1.0) + 1e-6) / self.clip
        for g in self.grads:
            if clip > 1:
                g.mul_(1.0 / clip)  # raises
        self._update()

    def step_with_a_number(self):
        self.reduce()
        coef = min(1.0, self.clip / (self._norm().item() + 1e-6))
        for g in self.grads:
            g.mul_(coef)
        self._update()

    def _update(self):
        for p, m, g in zip(self.params, self.master, self.grads):
            m.sub_(g, alpha=self.lr)
            p.data.copy_(m)
            p.grad = None


def offloaded_optimizer():
    net = nn.Linear(4, 2).cuda()
    opt = CPUAdamOffload(net.parameters())
    (net(torch.randn(8, 4).cuda()) * 100).pow(2).sum().backward()
    opt.step()


def offloaded_optimizer_with_a_number():
    net = nn.Linear(4, 2).cuda()
    opt = CPUAdamOffload(net.parameters())
    (net(torch.randn(8, 4).cuda()) * 100).pow(2).sum().backward()
    opt.step_with_a_number()
    return net(torch.randn(1, 4).cuda())


class LazyNet(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.inp = nn.Linear(dim, dim)
        self.norm: Optional[nn.Module] = None

    def forward(self, x):
        h = self.inp(x)
        if self.norm is None:
            self.norm = nn.LayerNorm(h.shape[-1])
        return self.norm(h)  # raises


def layer_created_in_forward():
    net = LazyNet().to("cuda")
    return net(torch.randn(2, 4, device="cuda"))


def copy_for_evaluation_on_the_cpu():
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).to("cuda:0")
    frozen = copy.deepcopy(net).cpu().eval()
    x = torch.randn(2, 4)
    with torch.no_grad():
        diff = frozen(x) - net(x.to("cuda:0")).cpu()
    return diff.abs().max().numpy().item() < 1e-3


def config_says_the_wrong_gpu():
    cfg = SimpleNamespace(gpu_ids=[0, 4], net=SimpleNamespace(dim=4))
    net = nn.Linear(cfg.net.dim, 2).to(f"cuda:{cfg.gpu_ids[0]}")
    aux = nn.Linear(cfg.net.dim, 2).to(f"cuda:{cfg.gpu_ids[-1]}")  # raises
    return net, aux
