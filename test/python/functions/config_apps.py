#!/usr/bin/env python3
import argparse
import contextlib
import functools
import itertools
import json
import logging
import os
import sys
from types import SimpleNamespace

import torch
import torch.nn as nn
import torch.nn.functional as F

logger = logging.getLogger(__name__)


def get_args(argv=()):
    p = argparse.ArgumentParser()
    p.add_argument("--no-cuda", action="store_true", default=False)
    p.add_argument("--gpu", type=int, default=1, help="index of the card")
    p.add_argument("--lr", default=1e-2, type=float)
    p.add_argument("--device", default="cuda")
    args = p.parse_args(list(argv))
    args.cuda = not args.no_cuda and torch.cuda.is_available()
    return args


class Net(nn.Module):
    def __init__(self, nin=3, nout=2):
        super(Net, self).__init__()
        self.l = nn.Linear(nin, nout)

    def forward(self, x):
        return self.l(x)  # raises


def case_vae_like_flags():
    args = get_args()
    device = torch.device("cuda" if args.cuda else "cpu")
    model = Net().to(device)
    kwargs = {"pin_memory": True} if args.cuda else {}
    loader = torch.utils.data.DataLoader(torch.randn(4, 3), batch_size=2, **kwargs)
    for x in loader:
        model(x.to(device)).sum().backward()


def case_cuda_flag_model_only():
    args = get_args()
    model = Net()
    if args.cuda:
        model.cuda()
    for x in torch.utils.data.DataLoader(torch.randn(4, 3), batch_size=2):
        if args.no_cuda:
            x = x.cpu()
        model(x)


def case_gpu_index_argument():
    args = get_args()
    if args.gpu is not None:
        torch.cuda.set_device(args.gpu)
        model = Net().cuda(args.gpu)
    x = torch.randn(2, 3).cuda(args.gpu, non_blocking=True)
    y = torch.randint(2, (2,)).cuda()
    F.cross_entropy(model(x), y).backward()


def case_gpu_index_not_current():
    args = get_args(["--gpu", "2"])
    model = Net().cuda(args.gpu)
    criterion = nn.CrossEntropyLoss().cuda(args.gpu)
    x, y = torch.randn(2, 3).cuda(args.gpu), torch.randint(2, (2,)).cuda()
    loss = criterion(model(x), y)  # raises
    loss.backward()


def case_visible_range():
    n = torch.cuda.device_count()
    nets = [Net().to(f"cuda:{i}") for i in range(n)]
    spare = Net().to(f"cuda:{n}")  # raises
    return nets, spare


def case_round_robin():
    n = torch.cuda.device_count()
    cycle = itertools.cycle(range(n))
    for _ in range(6):
        dev = next(cycle)
        net, x = Net().to(dev), torch.randn(2, 3, device=dev)
        net(x)
    logger.info("done on %s", torch.device(dev))


CONFIG = json.loads("""
{"model": {"nin": 3, "nout": 4}, "train": {"device": "cuda:0", "batch": 2, "class_weights": [1, 2, 1, 1]},
 "teacher": {"device": "cuda:0"}}
""")


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.device = torch.device(cfg["train"]["device"])
        self.model = Net(**cfg["model"]).to(self.device)
        self.weights = torch.tensor(cfg["train"]["class_weights"], dtype=torch.float)
        self.hooks = []

    def compute_loss(self, logits, y):
        return F.cross_entropy(logits, y)

    def batch(self):
        n = self.cfg["train"]["batch"]
        return torch.randn(n, 3, device=self.device), torch.randint(4, (n,), device=self.device)

    def run(self, steps=2):
        for step in range(steps):
            x, y = self.batch()
            loss = self.compute_loss(self.model(x), y)
            loss.backward()
            for h in self.hooks:
                h(step, loss)
        return self


class WeightedTrainer(Trainer):
    def compute_loss(self, logits, y):
        return F.cross_entropy(logits, y, weight=self.weights.to(logits.device))


class WeightedByHandTrainer(Trainer):
    def compute_loss(self, logits, y):
        per = F.cross_entropy(logits, y, reduction="none")
        return (per * self.weights[y]).mean()  # raises


def case_trainer_plain():
    log = []
    t = Trainer(CONFIG)
    t.hooks.append(lambda s, l: log.append((s, round(l.item(), 3))))
    t.run()


def case_trainer_weighted():
    WeightedTrainer(CONFIG).run()


def case_trainer_weighted_by_hand():
    WeightedByHandTrainer(CONFIG).run(1)


# --- decorators ---------------------------------------------------------------
def to_gpu(fn):
    @functools.wraps(fn)
    def inner(*args, **kw):
        args = [a.cuda() if isinstance(a, torch.Tensor) else a for a in args]
        return fn(*args, **kw)
    return inner


@to_gpu
def pairwise(a, b, weight=None):
    d = (a[:, None] - b[None]).pow(2).sum(-1)
    if weight is not None:
        d = d * weight  # raises
    return d.sqrt()


def case_decorated_positional():
    return pairwise(torch.randn(2, 3), torch.randn(4, 3))


def case_decorated_keyword():
    return pairwise(torch.randn(2, 3), torch.randn(4, 3), weight=torch.rand(2, 4))


@contextlib.contextmanager
def evaluating(net):
    istrain = net.training
    try:
        net.eval()
        with torch.no_grad():
            yield net
    finally:
        if istrain:
            net.train()


@contextlib.contextmanager
def offloaded(net, device="cpu"):
    home = next(net.parameters()).device
    net.to(device)
    yield net
    net.to(home)


def case_offload_during_eval():
    big, small = Net().cuda(), Net().cuda()
    x = torch.randn(2, 3).cuda()
    with offloaded(big):
        with evaluating(small) as s:
            ref = s(x)
    return F.mse_loss(big(x), ref)


def case_use_while_offloaded():
    big = Net().cuda()
    x = torch.randn(2, 3).cuda()
    with offloaded(big), evaluating(big) as net:
        return net(x)


# --- generators ---------------------------------------------------------------
def infinite(device="cuda"):
    while True:
        yield torch.randn(2, 3, device=device), torch.zeros(2, 2)


def moved(it, device):
    for batch in it:
        yield tuple(t.to(device) for t in batch)


def case_generator_wrapped():
    net = Net().cuda()
    for i, (x, y) in enumerate(moved(infinite(), "cuda")):
        F.mse_loss(net(x), y)
        if i == 1:
            break


def case_generator_raw():
    net = Net().cuda()
    stream = infinite()
    x, y = next(stream)
    return F.binary_cross_entropy_with_logits(net(x), y)  # raises


def make_penalty(dim, strength):
    eye = torch.eye(dim)

    def penalty(w):
        return strength * (w @ w.t() - eye).pow(2).sum()  # raises
    return penalty


def make_penalty_lazy(dim, strength):
    state = {}

    def penalty(w):
        if "eye" not in state:
            state["eye"] = torch.eye(dim).to(w)
        return strength * (w @ w.t() - state["eye"]).pow(2).sum()
    return penalty


def case_orthogonal_penalty():
    net = Net(3, 3).to("cuda")
    return make_penalty(3, 0.1)(net.l.weight)


def case_orthogonal_penalty_lazy():
    net = Net(3, 3).to("cuda")
    fn = make_penalty_lazy(3, 0.1)
    (fn(net.l.weight) + fn(net.l.weight)).backward()


def case_env_controls_device():
    local = int(os.environ.get("SLURM_LOCALID", 0))
    ctx = SimpleNamespace(rank=local, device=f"cuda:{local}")
    net = Net().to(ctx.device)
    bias = torch.zeros(2, device=torch.device("cuda", ctx.rank))
    print((net(torch.ones(1, 3).to(ctx.device)) + bias).tolist(), file=sys.stderr)


class DeviceMixin:
    @property
    def device(self):
        return next(self.parameters()).device


class VAE(DeviceMixin, nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(6, 4), nn.Linear(2, 6)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn(*std.shape, device=self.device)
        return mu + eps * std

    def forward(self, x):
        mu, logvar = self.enc(x.view(-1, 6)).chunk(2, -1)
        return self.dec(self.reparameterize(mu, logvar)).sigmoid(), mu, logvar

    def sample(self, n):
        z = torch.randn(n, 2)
        return self.dec(z).sigmoid()  # raises


def case_vae_train():
    vae = VAE().cuda()
    x = torch.rand(3, 6).cuda()
    recon, mu, logvar = vae(x)
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    (F.binary_cross_entropy(recon, x, reduction="sum") + kld).backward()


def case_vae_sample():
    vae = VAE().cuda()
    with torch.no_grad():
        return vae.sample(4).cpu().view(4, 2, 3)
