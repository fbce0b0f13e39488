"""Objects of which only their use is known: what their attributes say of them, and of what their own methods ask."""

import torch
from torch import nn


class SamplePoints:
    """data.norm is an attribute that this gives the mesh, not the method of a tensor"""

    def __init__(self, num, include_normals=False):
        self.num = num
        self.include_normals = include_normals

    def __call__(self, data):
        pos, face = data.pos, data.face
        assert pos.size(1) == 3 and face.size(0) == 3
        frac = torch.rand(self.num, 1)
        first, second = pos[face[0]], pos[face[1]]
        if self.include_normals:
            data.norm = nn.functional.normalize(second - first, p=2)
        data.sampled = first + frac * (second - first)  # raises
        return data


class SampleBeside:
    def __init__(self, num):
        self.num = num

    def __call__(self, data):
        pos = data.pos
        assert pos.size(1) == 3
        data.norm = pos.norm(dim=1)
        data.sampled = pos + torch.rand(self.num, 1, device=pos.device)
        return data


class Series:
    """numpy() asks of its callers what that of a tensor asks"""

    def __init__(self, values):
        self.values = values

    def to(self, device):
        self.values = self.values.to(device)
        return self

    def numpy(self):
        return self.values.numpy()


class Stack(nn.Module):
    """the i-th of what callers keep is where the i-th layer is"""

    def __init__(self, devices, size):
        super().__init__()
        self.devices = devices
        self.layers = nn.ModuleList(nn.Linear(size, size).to(device) for device in devices)

    def forward(self, x, past):
        kept = []
        for layer, device, old in zip(self.layers, self.devices, past):
            x = layer(x.to(device))
            kept.append(torch.cat([old, x], 1))
        return x, kept


class Classifier(nn.Module):
    """callers who take another head move the model after that"""

    def __init__(self, size, classes):
        super().__init__()
        self.body = nn.Linear(size, size)
        self.head = nn.Linear(size, classes)

    def reset_classifier(self, classes):
        self.head = nn.Linear(self.body.out_features, classes)

    def forward(self, x):
        return self.head(self.body(x))


def ranks(sites, count):
    """a sum starts as a number, and holds tensors"""
    total = 0
    for site in sites:
        if site["kind"] == "sample":
            scores = site["scores"].reshape(count, -1).sum(-1)
            total = total + scores
    order = torch.argsort(total)
    return torch.index_select(torch.arange(count) + 1, -1, order)  # raises


class Prefetcher:
    """who pins memory knows that it is on the host"""

    def __init__(self, device):
        self.device = device

    def send(self, batch):
        batch = batch.pin_memory()
        return batch.to(self.device, non_blocking=True)


def noisy(count, **options):
    """what is passed on says where"""
    clean = torch.rand(count, 1).to(**options)
    return clean + 0.2 * torch.randn(count, 1, **options).clamp(max=1)


def with_noise(clean: torch.Tensor, scale, options):
    noise = torch.randn(3, **options)
    return clean.sin() + torch.tensor([scale, 1.0, 1.0], **options) * noise


def on_accelerator(count):
    """a machine has accelerators of one kind"""
    device = "mps" if torch.backends.mps.is_available() else "npu:0" if hasattr(torch, "npu") else "cuda:0"
    return torch.zeros(count, device=device) + torch.ones(count).cuda()
