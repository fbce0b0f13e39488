"""moving things around: what stays, what goes"""
import dataclasses
import os
import random
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(4, 3)

    def forward(self, a, b):
        return F.pairwise_distance(self.enc(a), self.enc(b))  # raises


def pairs():
    return torch.randn(2, 4), torch.randn(2, 4)


def case_loop_variable():
    net = Siamese()
    net.to("cuda")
    a, b = pairs()
    for t in (a, b):
        t = t.to("cuda")
    return net(a, b)


def case_map_to():
    net = Siamese()
    net.to("cuda")
    a, b = map(lambda t: t.to("cuda"), pairs())
    return net(a, b)


def case_statement_cuda():
    image = torch.rand(1, 3, 4, 4)
    conv = nn.Conv2d(3, 2, 1)
    if torch.cuda.is_available():
        conv.cuda()
        image.cuda()
    return conv(image)  # raises


def case_statement_cpu():
    features = nn.Linear(2, 2).cuda()(torch.ones(1, 2).cuda()).detach()
    features.cpu()
    arr = features.squeeze().numpy()  # raises
    return arr.sum()


def case_dict_update_in_loop():
    inputs = {"ids": torch.tensor([[1, 2]]), "types": torch.tensor([[0, 0]])}
    for key, value in inputs.items():
        inputs[key] = value.cuda()
    words, types = nn.Embedding(5, 3).cuda(), nn.Embedding(2, 3).cuda()
    return words(inputs["ids"]) + types(inputs["types"])


def case_dict_value_in_loop():
    inputs = {"ids": torch.tensor([[1, 2]]), "types": torch.tensor([[0, 0]])}
    words, types = nn.Embedding(5, 3).cuda(), nn.Embedding(2, 3).cuda()
    for key, value in inputs.items():
        if isinstance(value, torch.Tensor):
            value = value.cuda(non_blocking=True)
    h = words(inputs["ids"])  # raises
    return h + types(inputs["types"])


class State(NamedTuple):
    h: torch.Tensor
    c: torch.Tensor


def case_namedtuple_replace():
    cell = nn.LSTMCell(2, 3).to("cuda")
    state = State(torch.zeros(1, 3), torch.zeros(1, 3))
    state = state._replace(h=state.h.to("cuda"), c=state.c.to("cuda"))
    return cell(torch.ones(1, 2).to("cuda"), tuple(state))


@dataclasses.dataclass(frozen=True)
class Rays:
    origin: torch.Tensor
    direction: torch.Tensor

    def at(self, t):
        return self.origin + t[:, None] * self.direction  # raises

    def moved(self, device):
        return dataclasses.replace(self, origin=self.origin.to(device), direction=self.direction.to(device))


def case_frozen_moved():
    rays = Rays(torch.zeros(3, 3), torch.eye(3)).moved("cuda")
    return rays.at(torch.linspace(0, 1, 3, device="cuda"))


def case_frozen_half_moved():
    rays = Rays(torch.zeros(3, 3), torch.eye(3))
    rays = dataclasses.replace(rays, origin=rays.origin.to("cuda"))
    return rays.at(torch.linspace(0, 1, 3).to("cuda"))


def case_type_as_second_card():
    x = torch.randn(3, 3, device="cuda:1")
    eye = torch.eye(3).type_as(x)
    ones = torch.ones(3).to(x)
    return (x + eye) @ ones


def case_type_string_second_card():
    x = torch.randn(3, 3, device="cuda:1")
    eye = torch.eye(3).type(x.type())
    return x + eye  # raises


FloatTensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor


def case_legacy_constructor():
    valid = FloatTensor(2, 1).fill_(1.0)
    disc = nn.Sequential(nn.Linear(3, 1), nn.Sigmoid()).cuda()
    z = FloatTensor(np.random.normal(0, 1, (2, 3)))
    return F.binary_cross_entropy(disc(z), valid)


def case_legacy_constructor_other_card():
    device = torch.device("cuda:1")
    disc = nn.Sequential(nn.Linear(3, 1), nn.Sigmoid()).to(device)
    fake = FloatTensor(2, 1).fill_(0.0)
    out = disc(torch.randn(2, 3, device=device))
    return F.binary_cross_entropy(out, fake)  # raises


def case_tensor_of_scalars():
    losses = [nn.Linear(2, 1).cuda()(torch.ones(1, 2).cuda()).mean() for _ in range(3)]
    ema = torch.zeros(3, device="cuda")
    current = torch.tensor(losses)
    ema = 0.9 * ema + 0.1 * current  # raises
    return ema


def case_stack_of_scalars():
    losses = [nn.Linear(2, 1).cuda()(torch.ones(1, 2).cuda()).mean() for _ in range(3)]
    weights = torch.softmax(torch.stack([l.detach() for l in losses]), 0)
    total = sum(w * l for w, l in zip(weights, losses))
    total.backward()
    return np.mean([l.item() for l in losses])


def case_uncertainty_weights():
    log_vars = nn.Parameter(torch.zeros(2))
    net = nn.Linear(3, 2).cuda()
    opt = torch.optim.Adam(chain(net.parameters(), [log_vars]), lr=1e-2)
    out = net(torch.randn(4, 3).cuda())
    losses = [out[:, i].pow(2).mean() for i in range(2)]
    loss = sum(torch.exp(-log_vars[i]) * losses[i] + log_vars[i] for i in range(2))
    loss.backward()
    opt.step()
    return log_vars.grad.device


def case_uncertainty_weights_vector():
    log_vars = nn.Parameter(torch.zeros(2))
    net = nn.Linear(3, 2).cuda()
    out = net(torch.randn(4, 3).cuda())
    losses = out.pow(2).mean(0)
    loss = (torch.exp(-log_vars) * losses + log_vars).sum()  # raises
    loss.backward()


def case_shadowed_in_branch():
    x = torch.randn(2, 3)
    net = nn.Linear(3, 1)
    training = random.random() >= 0.0
    if training:
        net = net.cuda()
        batch = x.cuda()
    else:
        batch = x
    pred = net(batch)
    err = pred - x.mean(1, keepdim=True)  # raises
    return err.pow(2)


def case_correlated_branches():
    use_cuda = bool(int(os.environ.get("USE_CUDA", "1")))
    x, y = torch.randn(2, 3), torch.zeros(2, 1)
    net = nn.Linear(3, 1)
    if use_cuda:
        net = net.cuda()
    for _ in range(2):
        a, b = x, y
        if use_cuda:
            a = a.cuda()
            b = b.cuda()
        F.mse_loss(net(a), b).backward()


def case_non_leaf_views():
    net = nn.Linear(3, 3)
    rows = net.weight.data[:2]
    net.cuda()
    return rows.norm() + net.weight[:2].norm().cpu()


def case_view_kept_before_move():
    net = nn.Linear(3, 3)
    tied = net.weight.t()
    net.cuda()
    h = net(torch.randn(2, 3).cuda())
    return h @ tied  # raises


def case_fill_and_copy():
    out = torch.empty(4, 3, device="cuda")
    host = torch.arange(12.).view(4, 3)
    out.copy_(host)
    out[1:3] = host[1:3]
    out[0].fill_(host[0, 0])
    pinned = torch.empty(4, 3).pin_memory()
    pinned.copy_(out, non_blocking=True)
    return (pinned == host).all()


def case_scalar_in_place_on_host():
    grads = [torch.ones(3), torch.ones(2, 2)]
    net = nn.Linear(3, 1).cuda()
    net(torch.ones(1, 3).cuda()).sum().backward()
    norm = torch.stack([p.grad.norm() for p in net.parameters()]).norm()
    for g in grads:
        g.mul_(1.0 / norm)  # raises


def case_scalar_in_place_on_device():
    net = nn.Linear(3, 1).cuda()
    net(torch.ones(1, 3).cuda()).sum().backward()
    norm = torch.stack([p.grad.norm().cpu() for p in net.parameters()]).norm()
    for p in net.parameters():
        p.grad.mul_(1.0 / norm)


def case_numpy_of_stacked():
    net = nn.Linear(3, 2).cuda()
    embeddings = []
    with torch.no_grad():
        for _ in range(3):
            embeddings.append(net(torch.ones(1, 3).cuda())[0])
    X = np.stack([np.array(e) for e in embeddings])  # raises
    return X.mean(0)


def case_numpy_of_lists():
    net = nn.Linear(3, 2).cuda()
    embeddings = []
    with torch.no_grad():
        for _ in range(3):
            embeddings.extend(net(torch.ones(1, 3).cuda()).tolist())
    center = torch.as_tensor(np.array(embeddings).mean(0), dtype=torch.float32)
    return net.bias + center.to(net.bias)


def case_perturb_on_generator_device():
    rng = torch.Generator(device="cuda").manual_seed(1)
    x = torch.zeros(2, 3, device="cuda")
    x += torch.randn(x.shape, generator=rng, device=rng.device)
    return x


def case_perturb_default_device():
    rng = torch.Generator(device="cuda").manual_seed(1)
    x = torch.zeros(2, 3, device="cuda")
    noise = torch.randn(x.shape, generator=rng)  # raises
    return x + noise.to(x.device)


def case_environment_written():
    os.environ["RUN_ON"] = "cuda"
    x = torch.zeros(3).to(os.environ["RUN_ON"])
    if os.environ["RUN_ON"] == "cpu":
        return x.numpy()
    return x + torch.ones(3)  # raises


def case_environment_written_in_between():
    os.environ["RUN_ON"] = "cuda"
    x = torch.zeros(3).to(os.environ["RUN_ON"])
    os.environ["RUN_ON"] = "cpu"
    if os.environ.get("RUN_ON") == "cpu":
        x = x.cpu()
    return x + torch.ones(3)
