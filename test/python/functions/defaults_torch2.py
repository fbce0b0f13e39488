"""torch 2: default device as a context, as a global, as a decorator."""
import contextlib
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Rotary(nn.Module):
    def __init__(self, dim=4, n=8):
        super().__init__()
        inv = 1. / 100 ** (torch.arange(0, dim, 2) / dim)
        ang = torch.outer(torch.arange(n).float(), inv)
        self.cos, self.sin = ang.cos(), ang.sin()          # plain attributes, on the device of construction

    def forward(self, x):
        c, s = self.cos[:x.size(1)], self.sin[:x.size(1)]
        a, b = x.chunk(2, -1)
        return torch.cat([a * c - b * s, a * s + b * c], -1)  # raises


@contextlib.contextmanager
def default_device(dev):
    old = torch.get_default_device()
    torch.set_default_device(dev)
    try:
        yield torch.device(dev)
    finally:
        torch.set_default_device(old)


# clean
def case_built_under_the_context():
    with torch.device("cuda"):
        net = nn.Sequential(nn.Linear(4, 4), Rotary())
        x = torch.randn(2, 5, 4)
        target = torch.zeros(2, 5, 4)
    opt = torch.optim.AdamW(net.parameters())
    loss = F.mse_loss(net(x), target)
    loss.backward()
    opt.step()
    return loss.item()


# broken
def case_built_outside_used_inside():
    rot = Rotary()
    lin = nn.Linear(4, 4)
    with torch.device("cuda"):
        lin.to(torch.device("cuda"))
        rot.to("cuda")
        x = torch.ones(1, 3, 4)
        return rot(lin(x))


# broken
def case_numpy_stays_on_the_host():
    arr = np.random.rand(6, 4).astype("float32")
    with default_device("cuda"):
        net = nn.Linear(4, 2)
        w = torch.tensor([.5, .5])
        xs = torch.from_numpy(arr)
        out = net(xs)  # raises
        return out * w


# clean
def case_as_tensor_follows_the_default():
    arr = np.random.rand(6, 4).astype("float32")
    with default_device("cuda") as dev:
        net = nn.Linear(4, 2)
        y = net(torch.as_tensor(arr))
        mask = torch.arange(6) % 2 == 0
        z = y[mask] + torch.from_numpy(arr[:3, :2]).to(dev)
    back = torch.zeros(3, 2)
    back += z.detach().cpu()
    return back.numpy().sum()


# broken
def case_shuffling_loader_under_a_global_default():
    with default_device("cuda"):
        net = nn.Linear(3, 1)
        ds = TensorDataset(torch.randn(8, 3), torch.randn(8, 1))
        opt = torch.optim.SGD(net.parameters(), .1)
        for x, y in DataLoader(ds, batch_size=4, shuffle=True):  # raises
            F.mse_loss(net(x), y).backward()
            opt.step()


# clean
def case_explicit_device_wins_and_nesting():
    with torch.device("cuda:1"):
        a = torch.ones(3)
        with torch.device("cpu"):
            b = torch.arange(3)
            c = torch.full((3,), 2., device="cuda:1")
        d = torch.eye(3)
        like = torch.zeros_like(b)
    host = torch.ones(3, dtype=torch.long)
    return (d @ a + c).sum().item() + (host * b + like).sum().item()


class Holder(nn.Module):
    def __init__(self, device=None, dtype=None):
        super().__init__()
        placed = {"device": device, "dtype": dtype}
        self.register_buffer("table", torch.zeros(3, device=device))
        self.layer = nn.Linear(3, 3, **placed)

    def forward(self, x):
        return self.layer(x) + self.table


def ramp(n, device=None):
    return torch.arange(n, device=device)


# clean
def case_no_device_is_the_default_one():
    with torch.device("cuda"):
        net = Holder()
        steps = ramp(3)
    x = torch.ones(2, 3, device="cuda")
    return (net(x) + steps).sum().item()


# broken
def case_no_device_behind_the_block():
    with torch.device("cuda"):
        net = Holder()
    x = torch.ones(2, 3, device="cuda")
    return (net(x) + ramp(3)).sum().item()  # raises
