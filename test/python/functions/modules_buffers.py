"""Modules, parameters, buffers and hooks."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import prune

device = torch.device("cuda:0")


def data(n=4, dim=6):
    return torch.randn(n, dim, device=device)


# --- containers


class MultiHead(nn.Module):
    def __init__(self, dim, tasks, container):
        super().__init__()
        self.trunk = nn.Linear(dim, dim)
        self.heads = container(nn.Linear(dim, n) for n in tasks)

    def forward(self, x):
        x = self.trunk(x).relu()
        return [head(x) for head in self.heads]  # raises


def case_heads_in_tuple():
    return MultiHead(6, (2, 3), tuple).to(device)(data())


def case_heads_in_module_list():
    return MultiHead(6, (2, 3), nn.ModuleList).to(device)(data())


# --- projections


class LazyProjection(nn.Module):
    def __init__(self, out):
        super().__init__()
        self.out = out
        self.proj = None

    def build(self, x):
        return nn.Linear(x.shape[-1], self.out)

    def forward(self, x):
        if self.proj is None:
            self.proj = self.build(x)
        return self.proj(x)  # raises


class LazyProjectionLike(LazyProjection):
    def build(self, x):
        return super().build(x).to(x)


def case_lazy():
    return LazyProjection(3).to(device)(data())


def case_lazy_like():
    net = LazyProjectionLike(3)
    return net(data()), net(data())


# --- buffers


class Scaled(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.register_buffer("scale", torch.ones(dim))

    def recalibrate(self, x):
        raise NotImplementedError

    def forward(self, x):
        return F.layer_norm(x, (self.dim,)) * self.scale  # raises


class QuantileScaled(Scaled):
    def recalibrate(self, x):
        levels = x.abs().cpu().quantile(0.9, dim=0)
        self.scale = 1.0 / levels.clamp(min=1e-3)


class StdScaled(Scaled):
    def recalibrate(self, x):
        self.scale.copy_(1.0 / x.cpu().std(0).clamp(min=1e-3))


def calibrated(cls):
    net = cls(6).to(device)
    net.recalibrate(data(8))
    return net(data())


def case_recalibrated_by_quantile():
    return calibrated(QuantileScaled)


def case_recalibrated_by_std():
    return calibrated(StdScaled)


class RunningStats(nn.Module):
    def __init__(self, dim, momentum=0.1, track=True):
        super().__init__()
        self.momentum = momentum
        if track:
            self.stats = torch.stack([torch.zeros(dim), torch.ones(dim)])
        else:
            self.register_buffer("stats", None)

    def forward(self, x):
        now = torch.stack([x.mean(0), x.var(0)])
        if self.stats is not None:
            self.stats.lerp_(now.detach(), self.momentum)  # raises
        return (x - now[0]) * torch.rsqrt(now[1] + 1e-5)


def case_running_stats():
    return RunningStats(6).to(device).train()(data())


def case_running_stats_off():
    return RunningStats(6, track=False).to(device).train()(data())


# --- autoencoders


class AutoEncoder:
    def __init__(self, dim, hidden):
        self.encoder = nn.Linear(dim, hidden)
        self.decoder = nn.Linear(hidden, dim)
        self.prior = torch.zeros(hidden)

    def to(self, where):
        self.encoder = self.encoder.to(where)
        return self

    def reconstruct(self, x):
        code = torch.tanh(self.encoder(x))
        return self.decoder(code)  # raises


class MovedAutoEncoder(AutoEncoder):
    def to(self, where):
        for name, value in vars(self).items():
            if isinstance(value, (nn.Module, torch.Tensor)):
                setattr(self, name, value.to(where))
        return self

    def penalty(self, x):
        return (self.encoder(x) - self.prior).pow(2).mean()


def case_autoencoder():
    return AutoEncoder(6, 2).to(device).reconstruct(data())


def case_autoencoder_moved():
    net = MovedAutoEncoder(6, 2).to(device)
    return net.reconstruct(data()) + net.penalty(data())


# --- hooks


def centre_inputs(module, reference):
    mean = reference.mean(0)

    def hook(_, inputs):
        return (inputs[0] - mean,)  # raises

    return module.register_forward_pre_hook(hook)


def case_centred_inputs():
    layer = nn.Linear(6, 2).to(device)
    centre_inputs(layer, torch.randn(10, 6))
    return layer(data())


def case_activations_kept_on_host():
    net, kept = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2)).to(device), {}
    for name, module in net.named_modules():
        module.register_forward_hook(lambda m, i, o, name=name: kept.__setitem__(name, o.detach().cpu()))
    net(data())
    return (kept["1"] - kept["0"].clamp(min=0)).abs().max().item()


# --- adapters and pruning


class Adapter(nn.Module):
    def __init__(self, base, rank, alpha=1.0):
        super().__init__()
        self.base, self.alpha = base, alpha
        self.down = nn.Parameter(self.table(base.in_features, rank))
        self.up = nn.Parameter(self.table(rank, base.out_features))

    def table(self, rows, columns):
        return 0.02 * torch.randn(rows, columns)

    def forward(self, x):
        return self.base(x) + self.alpha * (x @ self.down @ self.up)  # raises


class AdapterLike(Adapter):
    def table(self, rows, columns):
        return self.base.weight.new_empty(rows, columns).normal_(std=0.02)


def adapt(net, cls, rank=2):
    for name, child in list(net.named_children()):
        if isinstance(child, nn.Linear):
            setattr(net, name, cls(child, rank))
    return net


def case_adapted():
    net = nn.Sequential(nn.Linear(6, 6), nn.ReLU()).to(device)
    return adapt(net, Adapter)(data())


def case_adapted_like():
    net = nn.Sequential(nn.Linear(6, 6), nn.ReLU()).to(device)
    return adapt(net, AdapterLike)(data())


def magnitude_mask(layer, share):
    weight = layer.weight.detach().cpu()
    threshold = weight.abs().flatten().kthvalue(int(share * weight.numel())).values
    return (weight.abs() > threshold).float()


def case_pruned():
    layer = nn.Linear(6, 4).to(device)
    prune.custom_from_mask(layer, "weight", magnitude_mask(layer, 0.5))  # raises
    return layer(data())


def case_pruned_before_move():
    layer = nn.Linear(6, 4)
    prune.custom_from_mask(layer, "weight", magnitude_mask(layer, 0.5))
    return layer.to(device)(data())


class Tagger(nn.Module):
    def __init__(self, vocab=8, dim=6):
        super().__init__()
        self.embed, self.out = nn.Embedding(vocab, dim), nn.Linear(dim, 2)

    def use_vectors(self, vectors):
        self.embed = nn.Embedding.from_pretrained(vectors, freeze=True)

    def copy_vectors(self, vectors):
        with torch.no_grad():
            self.embed.weight.copy_(vectors)

    def forward(self, ids):
        return self.out(self.embed(ids))  # raises


def case_pretrained_vectors():
    tagger = Tagger().to(device)
    tagger.use_vectors(torch.randn(8, 6))
    return tagger(torch.tensor([[1, 2]], device=device))


def case_copied_vectors():
    tagger = copy.deepcopy(Tagger().to(device))
    tagger.copy_vectors(torch.randn(8, 6))
    return tagger(torch.tensor([[1, 2]], device=device))
