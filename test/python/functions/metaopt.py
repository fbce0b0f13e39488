import copy
import math
import random
from collections import OrderedDict, defaultdict
from contextlib import ExitStack, contextmanager

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import Optimizer

device = 'cuda:0' if torch.cuda.is_available() else 'cpu'


# ---------------------------------------------------------------- tasks

class SineTask:
    def __init__(self, amp, phase, noise=0.0):
        self.amp, self.phase, self.noise = amp, phase, noise

    def sample(self, k, dev=None):
        x = torch.empty(k, 1, device=dev).uniform_(-5, 5)
        y = self.amp * torch.sin(x + self.phase)
        if self.noise:
            y = y + self.noise * torch.randn(y.shape)  # raises
        return x, y


class TaskDistribution:
    def __init__(self, noise=0.0, seed=0):
        self.rng = random.Random(seed)
        self.noise = noise

    def __iter__(self):
        while True:
            yield SineTask(self.rng.uniform(0.1, 5.0), self.rng.uniform(0, math.pi), self.noise)

    def take(self, n):
        it = iter(self)
        return [next(it) for _ in range(n)]


def episode(n_way=3, k_shot=2, q=2, dim=4):
    protos = torch.randn(n_way, dim)
    xs = protos[:, None] + 0.1 * torch.randn(n_way, k_shot + q, dim)
    support, query = xs[:, :k_shot].reshape(-1, dim), xs[:, k_shot:].reshape(-1, dim)
    return support, torch.arange(n_way).repeat_interleave(k_shot), query, torch.arange(n_way).repeat_interleave(q)


# ---------------------------------------------------------------- functional nets

def linear_init(n_in, n_out):
    return torch.randn(n_out, n_in) / math.sqrt(n_in), torch.zeros(n_out)


class FastMLP(nn.Module):
    def __init__(self, sizes=(1, 8, 1)):
        super().__init__()
        self.sizes = sizes
        for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
            w, bias = linear_init(a, b)
            self.register_parameter(f'w{i}', nn.Parameter(w))
            self.register_parameter(f'b{i}', nn.Parameter(bias))

    def forward(self, x, params=None):
        p = params if params is not None else OrderedDict(self.named_parameters())
        n = len(self.sizes) - 1
        for i in range(n):
            x = F.linear(x, p[f'w{i}'], p[f'b{i}'])  # raises
            if i < n - 1:
                x = F.relu(x)
        return x


def inner_loop(net, loss_fn, x, y, steps=1, lr=0.01, params=None):
    params = params or OrderedDict(net.named_parameters())
    for _ in range(steps):
        loss = loss_fn(net(x, params), y)
        grads = torch.autograd.grad(loss, list(params.values()), create_graph=True)
        params = OrderedDict((n, p - lr * g) for (n, p), g in zip(params.items(), grads))
    return params


class MAML:
    def __init__(self, net, inner_lr=0.01, outer_lr=1e-3, anneal=False):
        self.net = net
        self.inner_lr = nn.Parameter(torch.tensor(inner_lr))
        self.opt = torch.optim.Adam(list(net.parameters()) + [self.inner_lr], lr=outer_lr)
        self.snapshot = None
        self.anneal = anneal

    def remember(self):
        self.snapshot = OrderedDict((n, p.detach().clone().requires_grad_()) for n, p in self.net.named_parameters())
        return self

    def to(self, dev):
        self.net.to(dev)
        return self

    def outer_step(self, tasks, k=4):
        self.opt.zero_grad()
        total = 0.
        for task in tasks:
            xs, ys = task.sample(k, device)
            xq, yq = task.sample(k, device)
            fast = inner_loop(self.net, F.mse_loss, xs, ys, lr=self.inner_lr)
            total = total + F.mse_loss(self.net(xq, fast), yq)
        total.backward()
        self.opt.step()
        return total.item() / len(tasks)

    def evaluate_from_snapshot(self, task, steps=2):
        x, y = task.sample(4, device)
        fast = inner_loop(self.net, F.mse_loss, x, y, steps, float(self.inner_lr), params=self.snapshot)
        return F.mse_loss(self.net(x, fast), y).item()


def case_maml_learned_scalar_rate():
    maml = MAML(FastMLP()).to(device)
    tasks = TaskDistribution().take(2)
    return [maml.outer_step(tasks) for _ in range(2)]


def case_maml_snapshot_before_move():
    maml = MAML(FastMLP()).remember().to(device)
    task, = TaskDistribution().take(1)
    maml.outer_step([task])
    return maml.evaluate_from_snapshot(task)


def case_maml_noisy_tasks():
    maml = MAML(FastMLP()).to(device)
    before = maml.remember().evaluate_from_snapshot(SineTask(1.0, 0.0))
    return before, maml.outer_step(TaskDistribution(noise=0.1).take(2))


# ---------------------------------------------------------------- per-parameter learning rates

class MetaSGD(nn.Module):
    def __init__(self, net, lr=0.01):
        super().__init__()
        self.net = net
        self.lrs = {n: nn.Parameter(torch.full_like(p, lr)) for n, p in net.named_parameters()}

    def adapt(self, x, y):
        params = OrderedDict(self.net.named_parameters())
        grads = torch.autograd.grad(F.mse_loss(self.net(x), y), params.values(), create_graph=True)
        return OrderedDict((n, p - self.lrs[n] * g) for (n, p), g in zip(params.items(), grads))  # raises


class MetaSGDList(MetaSGD):
    def __init__(self, net, lr=0.01):
        super().__init__(net, lr)
        self.lrs = nn.ParameterDict(self.lrs)


def meta_sgd_round(cls):
    model = cls(FastMLP()).to(device)
    task, = TaskDistribution().take(1)
    x, y = task.sample(4, dev=device)
    return F.mse_loss(model.net(x, model.adapt(x, y)), y).item()


def case_meta_sgd_dict_of_rates():
    return meta_sgd_round(MetaSGD)


def case_meta_sgd_parameter_dict():
    return meta_sgd_round(MetaSGDList)


# ---------------------------------------------------------------- prototypes

class ProtoNet(nn.Module):
    def __init__(self, dim=4, hid=4):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(dim, hid), nn.ReLU(), nn.Linear(hid, hid))
        self.memory = defaultdict(list)

    def prototypes(self, s, ys):
        z = self.enc(s)
        return torch.stack([z[ys == c].mean(0) for c in ys.unique()])

    def forward(self, s, ys, q):
        return -torch.cdist(self.enc(q), self.prototypes(s, ys))

    def remember(self, s, ys):
        for z, c in zip(self.enc(s).detach(), ys.tolist()):
            self.memory[c].append(z)

    def recall(self, q):
        protos = torch.stack([torch.stack(v).mean(0) for _, v in sorted(self.memory.items())])
        return -torch.cdist(self.enc(q), protos)


def case_protonet_labels_left_on_host():
    net = ProtoNet().to(device)
    s, ys, q, yq = episode()
    logits = net(s.to(device), ys, q.to(device))
    return (logits.argmax(1).cpu() == yq).float().mean().item()


def case_protonet_memory():
    net = ProtoNet().to(device)
    for _ in range(2):
        s, ys, q, yq = episode()
        net.remember(s.to(device), ys)
    return F.cross_entropy(net.recall(q.to(device)), yq.to(device)).item()


# ---------------------------------------------------------------- optimisers

class Lookahead:
    def __init__(self, base, k=2, alpha=0.5):
        self.base, self.k, self.alpha, self.count = base, k, alpha, 0
        self.slow = [[p.detach().clone() for p in g['params']] for g in base.param_groups]

    def zero_grad(self):
        self.base.zero_grad(set_to_none=True)

    @torch.no_grad()
    def step(self):
        self.base.step()
        self.count += 1
        if self.count % self.k:
            return
        for group, slow in zip(self.base.param_groups, self.slow):
            for p, s in zip(group['params'], slow):
                s.add_(p - s, alpha=self.alpha)  # raises
                p.copy_(s)


class Lion(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            for p in filter(lambda p: p.grad is not None, group['params']):
                st = self.state[p]
                if not st:
                    st['exp_avg'] = torch.zeros_like(p, memory_format=torch.preserve_format)
                m = st['exp_avg']
                p.mul_(1 - group['lr'] * group['weight_decay'])
                p.add_((m * b1 + p.grad * (1 - b1)).sign_(), alpha=-group['lr'])
                m.mul_(b2).add_(p.grad, alpha=1 - b2)


class NormalizedSGD(Optimizer):
    """Keeps one running norm per group; norms are scalars."""

    def __init__(self, params, lr=0.1, beta=0.9, per_tensor=False):
        super().__init__(params, dict(lr=lr, beta=beta))
        self.per_tensor = per_tensor
        for g in self.param_groups:
            g['running'] = torch.zeros(len(g['params'])) if per_tensor else torch.tensor(0.)

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            norms = torch.stack([p.grad.norm() for p in g['params']])
            if self.per_tensor:
                g['running'] = torch.lerp(norms.cpu(), g['running'], g['beta'])
                for p, r in zip(g['params'], g['running']):
                    p.sub_(g['lr'] * p.grad / (r + 1e-8))
            else:
                g['running'] = g['beta'] * g['running'] + (1 - g['beta']) * norms.norm()
                for p in g['params']:
                    p.addcdiv_(p.grad, g['running'] + 1e-8, value=-g['lr'])


def fit(net, opt, steps=3):
    torch.manual_seed(0)
    dev = next(net.parameters()).device
    for _ in range(steps):
        x, y = SineTask(1., 0.3).sample(4, dev)
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
    return loss.item()


def case_lookahead_wrapped_before_move():
    net = FastMLP()
    opt = Lookahead(torch.optim.SGD(net.parameters(), lr=0.1))
    net.to(device)
    return fit(net, opt)


def case_lion_built_before_move():
    net = FastMLP()
    opt = Lion(net.parameters(), weight_decay=0.1)
    net.to(device)
    return fit(net, opt)


def case_normalized_sgd_per_tensor():
    net = FastMLP().to(device)
    return fit(net, NormalizedSGD(net.parameters(), per_tensor=True)), fit(net, NormalizedSGD(net.parameters()))


# ---------------------------------------------------------------- weights in and out

@contextmanager
def swapped(net, params):
    saved = {n: p.data for n, p in net.named_parameters()}
    for n, p in net.named_parameters():
        p.data = params[n].data
    try:
        yield net
    finally:
        for n, p in net.named_parameters():
            p.data = saved[n]


class Ema:
    def __init__(self, net, decay=0.9, on='cpu'):
        self.decay, self.on = decay, on
        self.shadow = {n: p.detach().clone().to(on) for n, p in net.named_parameters()}

    def update(self, net):
        for n, p in net.named_parameters():
            self.shadow[n].lerp_(p.detach().to(self.on), 1 - self.decay)


def case_offloaded_ema_swapped_in():
    net = FastMLP().to(device)
    ema = Ema(net)
    fit(net, torch.optim.SGD(net.parameters(), lr=0.1))
    ema.update(net)
    x, y = SineTask(1., 0.).sample(4, device)
    with ExitStack() as stack, torch.no_grad():
        model = stack.enter_context(swapped(net, ema.shadow))
        hidden = F.relu(x @ model.w0.t())  # raises
    return hidden.mean().item()


def reptile(net, tasks, eps=0.1):
    weights = copy.deepcopy(net.state_dict())
    deltas = []
    for task in tasks:
        worker = copy.deepcopy(net)
        fit(worker, Lion(worker.parameters(), lr=0.01), steps=1)
        deltas.append({k: v - weights[k] for k, v in worker.state_dict().items()})
    mean = {k: torch.stack([d[k] for d in deltas]).mean(0).cpu() for k in weights}
    net.load_state_dict({k: weights[k].cpu() + eps * mean[k] for k in weights})
    return net


def case_reptile_averages_on_host():
    net = reptile(FastMLP().to(device), TaskDistribution().take(2))
    return net(torch.zeros(1, 1, device=device)).item()
