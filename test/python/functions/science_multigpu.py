#!/usr/bin/env python
"""Physics informed nets, particle simulation, Gaussian processes; helpers for several cards and for arrays on disk."""
from __future__ import print_function

import contextlib
import copy
import functools
import logging
import os
import queue
import tempfile
import threading
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import torch.nn as nn

logger = logging.getLogger('science')

_DEFAULTS = {'device': 'cpu', 'dtype': torch.float32}


def set_default(**kw):
    _DEFAULTS.update(kw)


@contextlib.contextmanager
def default_device(device):
    old = _DEFAULTS['device']
    _DEFAULTS['device'] = device
    try:
        yield torch.device(device)
    finally:
        _DEFAULTS['device'] = old


def tensor(data, **kw):
    opts = {**_DEFAULTS, **kw}
    return torch.as_tensor(data).to(**opts)


def grid(n, d=1, **kw):
    axes = [torch.linspace(0, 1, n, **kw)] * d
    return torch.cartesian_prod(*axes).view(-1, d)


def pick_gpu(preferred):
    """Falls back if the node is smaller than the config says."""
    for index in preferred:
        try:
            torch.zeros(1, device='cuda:%d' % index)
        except RuntimeError as e:
            logger.info('gpu %d: %s', index, e)
            continue
        return torch.device('cuda', index)
    return torch.device('cpu')


# ---------------------------------------------------------------- PINN

class Sine(nn.Module):
    def __init__(self, w0=1.):
        super(Sine, self).__init__()
        self.w0 = torch.tensor(w0)

    def forward(self, x):
        return torch.sin(self.w0 * x)


class PINN(nn.Module):
    def __init__(self, width=8, bounds=((0., 1.),)):
        super(PINN, self).__init__()
        lo, hi = zip(*bounds)
        self.lo, self.hi = torch.tensor(lo), torch.tensor(hi)
        self.net = nn.Sequential(nn.Linear(len(bounds), width), Sine(2.), nn.Linear(width, 1))

    def _apply(self, fn):
        super(PINN, self)._apply(fn)  # raises
        self.lo, self.hi = fn(self.lo), fn(self.hi)
        return self

    def forward(self, x):
        return self.net(2 * (x - self.lo) / (self.hi - self.lo) - 1)


class InversePINN(PINN):
    """Also estimates the diffusivity."""

    def __init__(self, guess=0.5, **kw):
        super(InversePINN, self).__init__(**kw)
        self.log_kappa = torch.full((1,), guess).log().requires_grad_()

    def parameters(self, recurse=True):
        yield self.log_kappa
        for p in super(InversePINN, self).parameters(recurse):
            yield p

    def residual(self, x):
        x = x.requires_grad_()
        u = self(x)
        du, = torch.autograd.grad(u.sum(), x, create_graph=True)
        ddu, = torch.autograd.grad(du.sum(), x, create_graph=True)
        return self.log_kappa.exp() * ddu + torch.sin(x)  # raises


def boundary_loss(model, left=0., right=0.):
    ends = torch.tensor([[0.], [1.]])
    target = torch.tensor([[left], [right]])
    device = next(model.parameters()).device
    return (model(ends.to(device)) - target).pow(2).mean()  # raises


def lbfgs_fit(model, points, loss_fn, steps=2):
    opt = torch.optim.LBFGS(model.parameters(), max_iter=steps)

    def closure():
        opt.zero_grad()
        loss = loss_fn(model, points)
        loss.backward()
        return loss

    return opt.step(closure)


def momentum_fit(model, points, opt, loss_fn, steps=2):
    for _ in range(steps):
        opt.zero_grad()
        loss_fn(model, points).backward()
        opt.step()  # raises
    return model


def smooth(model, x):
    return model(x).pow(2).mean()


# ---------------------------------------------------------------- particles

class Particles(object):
    __slots__ = ('pos', 'vel', 'mass', 'box', '_acc')

    def __init__(self, n, box=1., device='cpu'):
        self.pos = torch.rand(n, 3, device=device)
        self.vel = torch.zeros(n, 3, device=device)
        self.mass = torch.ones(n, 1, device=device)
        self.box = torch.tensor([box] * 3)
        self._acc = None

    def cuda(self, index=0):
        dev = torch.device('cuda', index)
        for name in self.__slots__[:3]:
            setattr(self, name, getattr(self, name).to(dev))
        return self

    def gravity(self):
        d = self.pos[None] - self.pos[:, None]
        inv = (d.pow(2).sum(-1, keepdim=True) + .01).rsqrt().pow(3)
        return (d * inv * self.mass[None]).sum(1)

    def step(self, dt=.01):
        acc = self._acc if self._acc is not None else self.gravity()
        half = self.vel + .5 * dt * acc  # raises
        self.pos = self.pos + dt * half
        self._acc = self.gravity()
        self.vel = half + .5 * dt * self._acc
        return self

    def wrap(self):
        self.pos = torch.remainder(self.pos, self.box)  # raises
        return self

    def energy(self):
        return .5 * (self.mass * self.vel.pow(2)).sum()


class Recorder(object):
    def __init__(self, every=1):
        self.frames, self.every = [], every

    def __call__(self, p, i):
        if i % self.every == 0:
            self.frames.append(p.pos.detach().cpu())

    def trajectory(self):
        return torch.stack(self.frames).numpy()


class RawRecorder(Recorder):
    def __call__(self, p, i):
        self.frames.append(p.pos)

    def trajectory(self):
        stacked = torch.stack(self.frames)
        return np.asarray(stacked)  # raises


# ---------------------------------------------------------------- Gaussian process

class GP(object):
    def __init__(self, noise=.1, jitter=True):
        self.noise, self.jitter = noise, jitter

    def kernel(self, a, b):
        dist = torch.cdist(a, b)  # raises
        return torch.exp(-.5 * dist.pow(2))

    def fit(self, x, y):
        k = self.kernel(x, x)
        if self.jitter:
            k = k + self.noise * torch.eye(len(x)).to(k)
        else:
            k.diagonal().add_(self.noise)
        self.x, self.chol = x, torch.linalg.cholesky(k)
        self.alpha = torch.cholesky_solve(y, self.chol)
        return self

    def predict(self, q):
        ks = self.kernel(q, self.x)
        return ks @ self.alpha


class InducingGP(GP):
    def __init__(self, m=4, **kw):
        super(InducingGP, self).__init__(**kw)
        self.m = m

    def fit(self, x, y):
        pick = torch.randperm(len(x))[:self.m]
        return super(InducingGP, self).fit(x[pick], y[pick])


# ---------------------------------------------------------------- several cards

class Replicas(object):
    def __init__(self, model, indices):
        self.devices = [torch.device('cuda', i) for i in indices]
        self.models = [copy.deepcopy(model).to(d) for d in self.devices]

    def scatter(self, x):
        return [c.to(d) for c, d in zip(x.chunk(len(self.devices)), self.devices)]

    def __call__(self, x, gather=None):
        with ThreadPoolExecutor(2) as pool:
            outs = list(pool.map(lambda mx: mx[0](mx[1]), zip(self.models, self.scatter(x))))
        if gather is None:
            return outs
        return torch.cat([o.to(gather) for o in outs])

    def average_(self):
        flat = [list(m.parameters()) for m in self.models]
        for group in zip(*flat):
            mean = sum(p.data.to(self.devices[0]) for p in group) / len(group)
            for p in group:
                p.data.copy_(mean)

    def reduce_loss(self, losses):
        total = losses[0]
        for l in losses[1:]:
            total = total + l  # raises
        return total / len(losses)


class Stages(nn.Module):
    def __init__(self, *stages):
        super(Stages, self).__init__()
        self.stages = nn.ModuleList(stages)
        self.skip = False

    def place(self, *indices):
        for s, i in zip(self.stages, indices):
            s.cuda(i)
        return self

    def forward(self, x):
        h = x
        for s in self.stages:
            p = next(s.parameters())
            h = s(h.to(p.device))
        if self.skip:
            h = h + x  # raises
        return h


def shard_rows(weight, cards):
    return [w.to('cuda:%d' % c) for w, c in zip(weight.chunk(len(cards)), cards)]


def sharded_matmul(x, shards, home=None):
    parts = [torch.matmul(x.to(s.device), s.t()) for s in shards]
    if home is not None:
        parts = [p.to(home) for p in parts]
    return torch.cat(parts, dim=-1)  # raises


# ---------------------------------------------------------------- arrays on disk

def save_npz(path, **arrays):
    np.savez(path, **{k: v.detach().cpu().numpy() if torch.is_tensor(v) else v for k, v in arrays.items()})


def load_npz(path, device=None):
    with np.load(path) as f:
        ns = types.SimpleNamespace(**{k: torch.from_numpy(f[k]) for k in f.files})
    if device is not None:
        for v in vars(ns).values():
            v.to(device)
    return ns


class Feeder(object):
    """Background thread that stages chunks to a device."""

    def __init__(self, chunks, device, normalize=None):
        self.q = queue.Queue(2)
        self.device, self.normalize = device, normalize
        self.worker = threading.Thread(target=self._work, args=(list(chunks),), daemon=True)
        self.worker.start()

    def _work(self, chunks):
        for c in chunks:
            self.q.put(c.to(self.device))
        self.q.put(None)

    def __iter__(self):
        while True:
            item = self.q.get()
            if item is None:
                return
            yield item if self.normalize is None else self.normalize(item)


# ---------------------------------------------------------------- cases

def case_pinn_overrides_apply():
    model = PINN(bounds=((0., 1.), (-1., 1.))).cuda()
    x = grid(3, 2, device='cuda')
    loss = lbfgs_fit(model, x, smooth)
    model.cpu()
    return float(loss), model(x.cpu()).detach().numpy().shape


def case_inverse_parameter_not_registered():
    model = InversePINN().to('cuda')
    x = grid(5).to('cuda')
    return lbfgs_fit(model, x, lambda m, p: m.residual(p).pow(2).mean())


def case_boundary_target():
    model = PINN()
    cold = boundary_loss(model, right=1.).item()
    model = model.cuda()
    return cold, boundary_loss(model, right=1.)


def case_momentum_then_other_card():
    model = PINN().to('cuda:0')
    opt = torch.optim.SGD(model.parameters(), lr=.1, momentum=.9)
    x = grid(5, device='cuda:0')
    momentum_fit(model, x, opt, smooth)
    model.to('cuda:1')
    return momentum_fit(model, x.to('cuda:1'), opt, smooth)


def case_optimizer_before_first_move():
    model = PINN()
    opt = torch.optim.SGD(model.parameters(), lr=.1, momentum=.9)
    device = pick_gpu([7, 2])
    model.to(device)
    momentum_fit(model, grid(5, device=device), opt, smooth)
    return device.index, model.net[0].weight.grad.norm().item()


def case_default_device_context():
    with default_device('cuda') as dev:
        pts = tensor([[.1], [.5]])
        model = PINN().to(dev)
        u = model(pts)
    ref = tensor([[0.], [0.]])
    return (u.cpu() - ref).abs().max().item(), u.device.type


def case_default_device_set_half_way():
    lo = tensor(np.zeros((2, 1)))
    set_default(device='cuda:0')
    hi = tensor(np.ones((2, 1)))
    mid = torch.lerp(lo, hi, 0.5)  # raises
    return PINN().cuda()(mid)


def case_particles_wrapped():
    p = Particles(4).cuda()
    for _ in range(2):
        p.step()
    return p.wrap().energy().item()


def case_particles_moved_mid_run():
    p, rec = Particles(4), Recorder()
    for i in range(4):
        if i == 2:
            p.cuda()
        p.step()
        rec(p, i)
    return rec.trajectory()


def case_particles_recorded():
    p, rec = Particles(4).cuda(1), Recorder(every=2)
    for i in range(4):
        p.step()
        rec(p, i)
    drift = rec.trajectory()[-1] - rec.trajectory()[0]
    return np.abs(drift).max(), float(p.energy())


def case_particles_recorded_raw():
    recorders = [Recorder(), RawRecorder()]
    p = Particles(3, device='cuda')
    for i in range(2):
        p.step()
        for r in recorders:
            r(p, i)
    return [r.trajectory() for r in recorders]


def case_gp_inducing_points():
    x = torch.rand(10, 1, device='cuda')
    gps = [InducingGP(4, jitter=j).fit(x, x.sin()) for j in (True, False)]
    return sum(g.predict(x).mean().item() for g in gps)


def case_gp_queries_from_grid():
    x = torch.rand(6, 1).cuda()
    gp = GP().fit(x, torch.cos(x))
    inside = gp.predict(x[:2]).cpu()
    return inside, gp.predict(grid(4))


def case_replicas_reduced():
    reps = Replicas(PINN(), (0, 1))
    outs = reps(grid(6))
    reps.average_()
    losses = [o.pow(2).mean() for o in outs]
    return reps.reduce_loss(losses)


def case_replicas_gathered():
    reps = Replicas(PINN(), range(torch.cuda.device_count()))
    x = grid(8)
    out = reps(x, gather='cuda:0')
    reps.average_()
    same = reps.reduce_loss([m.net[0].weight.mean().item() for m in reps.models])
    return (out.squeeze(1) * x.squeeze(1).cuda(0)).sum().item(), same


def case_stages_skip_connection():
    model = Stages(nn.Linear(4, 4), nn.Linear(4, 4)).place(0, 3)
    x = torch.randn(2, 4, device='cuda:0')
    y = model(x)
    model.skip = y.size() == x.size()
    return model(x)


def case_stages_skip_same_card():
    model = Stages(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)).place(0, 2, 0)
    model.skip = True
    return model(torch.randn(2, 4, device='cuda:0')).device.index


def case_sharded_output_concatenated():
    w = torch.randn(6, 4)
    shards = shard_rows(w, (0, 1, 2))
    x = torch.randn(2, 4).cuda()
    at_home = sharded_matmul(x, shards, home=x.device)
    return at_home, sharded_matmul(x, shards[1:])


def case_npz_roundtrip_device_argument():
    model = PINN().cuda()
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, 'pts.npz')
        x = grid(4, device='cuda')
        save_npz(path, x=x, u=model(x), n=np.int64(4) * np.ones(1))
        data = load_npz(path, device='cuda')
    err = model(x) - data.u  # raises
    return err.abs().max()


def case_npz_namespace_moved_by_caller():
    model = PINN().cuda()
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, 'pts.npz')
        save_npz(path, x=grid(4), u=model(grid(4, device='cuda')))
        data = load_npz(path)
    vars(data).update({k: v.cuda() for k, v in vars(data).items()})
    return (model(data.x) - data.u).abs().max().item()


def case_feeder_normalizer_closure():
    x = torch.randn(8, 1)
    mean, std = x.mean(0), x.std()
    model = PINN().cuda()
    plain = [model(c).mean().item() for c in Feeder(x.split(4), 'cuda')]

    def normalize(c):
        return (c - mean) / std  # raises

    return plain, [model(c) for c in Feeder(x.split(4), 'cuda', normalize)]


def case_feeder_scalar_normalizer():
    x = torch.randn(8, 1)
    lo, span = x.min(), x.max() - x.min()
    model = PINN().to('cuda:1')
    feed = Feeder(x.split(4), 'cuda:1', normalize=lambda c: (c - lo) / span)
    return sum(model(c).sum().item() for c in feed)


def case_card_index_beyond_node():
    cards = range(1, torch.cuda.device_count() + 1)
    models = {}
    for index in cards:
        models[index] = PINN().to('cuda:%d' % index)
    return models
