"""Checkpoints, optimizers and what they keep."""
import copy
import io

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel

DEV = "cuda:0"


def network(seed=0, device=DEV):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)).to(device)


def backward(net, device=DEV):
    x, y = torch.randn(6, 4, device=device), torch.randint(2, (6,), device=device)
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    return loss


def through_file(state, map_location="cpu"):
    stored = io.BytesIO()
    torch.save(state, stored)
    stored.seek(0)
    return torch.load(stored, map_location=map_location)


# --- optimizers of one's own


class SignMomentum(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, beta=0.9):
        super().__init__(params, dict(lr=lr, beta=beta))

    def first_state(self, p):
        return torch.zeros(p.shape)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "momentum" not in state:
                    state["momentum"] = self.first_state(p)
                m = state["momentum"]
                m.mul_(group["beta"]).add_(p.grad, alpha=1 - group["beta"])  # raises
                p.add_(m.sign(), alpha=-group["lr"])


class SignMomentumLike(SignMomentum):
    def first_state(self, p):
        return torch.zeros_like(p, memory_format=torch.preserve_format)


def case_sign_momentum():
    net = network()
    optimizer = SignMomentum(net.parameters())
    backward(net)
    optimizer.step()


def case_sign_momentum_like():
    net = network()
    optimizer = SignMomentumLike(net.parameters())
    for _ in range(2):
        backward(net)
        optimizer.step()


class Lookahead:
    def __init__(self, optimizer, k=2, alpha=0.5, pull=None):
        self.optimizer, self.k, self.alpha, self.count = optimizer, k, alpha, 0
        self.pull = pull or (lambda slow, p: slow)
        self.slow = [[p.detach().cpu().clone() for p in g["params"]] for g in optimizer.param_groups]

    @torch.no_grad()
    def step(self):
        self.optimizer.step()
        self.count += 1
        if self.count % self.k:
            return
        for group, slow in zip(self.optimizer.param_groups, self.slow):
            for i, p in enumerate(group["params"]):
                target = torch.lerp(self.pull(slow[i], p), p, self.alpha)  # raises
                p.copy_(target)
                slow[i].copy_(target)


def case_lookahead():
    net = network()
    optimizer = Lookahead(torch.optim.SGD(net.parameters(), lr=0.1))
    for _ in range(2):
        backward(net)
        optimizer.step()


def case_lookahead_pulled():
    net = network()
    optimizer = Lookahead(torch.optim.SGD(net.parameters(), lr=0.1), pull=lambda slow, p: slow.to(p.device))
    for _ in range(4):
        backward(net)
        optimizer.step()


# --- states read back


def trained_state():
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    backward(net)
    optimizer.step()
    momenta = {n: optimizer.state[p]["momentum_buffer"] for n, p in net.named_parameters()}
    return through_file({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "momenta": momenta})


def case_optimizer_restored():
    state, net = trained_state(), network(1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    backward(net)
    optimizer.step()


def case_momenta_restored_by_name():
    state, net = trained_state(), network(1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for name, p in net.named_parameters():
        optimizer.state[p]["momentum_buffer"] = state["momenta"][name]
    backward(net)
    optimizer.step()  # raises


def case_optimizer_before_move():
    net = network(device="cpu")
    optimizer = torch.optim.Adam(net.parameters())
    net.to(DEV)
    backward(net)
    optimizer.step()


def load_matching(net, state):
    """Takes what has the right shape, as old loaders did."""
    for name, p in net.named_parameters():
        if name in state and state[name].shape == p.shape:
            p.data = state[name]
    return net


def case_matching_weights():
    net = load_matching(network(1), through_file(network().state_dict()))
    return net(torch.randn(2, 4, device=DEV))  # raises


def case_matching_weights_mapped():
    net = load_matching(network(1), through_file(network().state_dict(), map_location=DEV))
    return net(torch.randn(2, 4, device=DEV))


class Prototypes(nn.Module):
    def __init__(self, dim=4, classes=3):
        super().__init__()
        self.encode = nn.Linear(dim, dim)
        self.centres = torch.zeros(classes, dim)

    def get_extra_state(self):
        return {"centres": self.centres}

    def set_extra_state(self, state):
        self.centres = state["centres"]

    def fit(self, x, labels):
        z = self.encode(x).detach()
        self.centres = torch.stack([z[labels == c].mean(0) for c in range(len(self.centres))])
        return self

    def forward(self, x):
        return torch.cdist(self.encode(x), self.centres).argmin(1)  # raises


def case_prototypes_fitted():
    net = Prototypes().to(DEV).fit(torch.randn(6, 4, device=DEV), torch.tensor([0, 1, 2] * 2, device=DEV))
    return net(torch.randn(2, 4, device=DEV))


def case_prototypes_restored():
    fitted = Prototypes().to(DEV).fit(torch.randn(6, 4, device=DEV), torch.tensor([0, 1, 2] * 2, device=DEV))
    net = Prototypes().to(DEV)
    net.load_state_dict(through_file(fitted.state_dict()))
    return net(torch.randn(2, 4, device=DEV))


# --- averages


def case_library_average_on_host():
    net = network()
    average = AveragedModel(copy.deepcopy(net).cpu())
    for _ in range(2):
        average.update_parameters(net)
    return average(torch.randn(2, 4))


class Polyak:
    def __init__(self, net):
        self.net = copy.deepcopy(net)

    def update(self, net, tau=0.1):
        with torch.no_grad():
            for mine, theirs in zip(self.net.parameters(), net.parameters()):
                mine.data.add_(tau * (theirs.data - mine.data))  # raises


def case_polyak_copied_early():
    net = network(device="cpu")
    average = Polyak(net)
    net = net.to(DEV)
    average.update(net)


def case_polyak_copied_late():
    net = network(device="cpu").to(DEV)
    average = Polyak(net)
    average.update(net)
    return average.net(torch.randn(2, 4, device=DEV))


# --- gradients


class Accumulator:
    """Adds up what workers sent, to be given to the optimizer at once."""

    def __init__(self, net):
        self.sums = {n: p.new_zeros(p.shape) for n, p in net.named_parameters()}

    def receive(self, message):
        for name, grad in through_file(message).items():
            self.sums[name].add_(grad, alpha=0.5)  # raises


def case_gradients_from_worker():
    net = network()
    backward(net)
    Accumulator(net).receive({n: p.grad for n, p in net.named_parameters()})


def case_gradients_copied_from_worker():
    net = network()
    backward(net)
    for p in net.parameters():
        p.grad.copy_(torch.ones(p.shape))
    return nn.utils.clip_grad_norm_(net.parameters(), 1.0).item()


def freeze_rows(weight, rows):
    keep = torch.ones(weight.size(0), 1)
    keep[rows] = 0
    return weight.register_hook(lambda grad: grad * keep)  # raises


def case_frozen_rows():
    net = network()
    freeze_rows(net[0].weight, [0, 1])
    return backward(net)


def case_gradients_on_two_gpus():
    first, second = network(), network(device="cuda:1")
    backward(first), backward(second, "cuda:1")
    return nn.utils.clip_grad_norm_([*first.parameters(), *second.parameters()], 0.5).item()
