"""Layers and helpers that spread one model over the GPUs of a single host."""
import math
from typing import Dict, List, Sequence

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.cuda import comm
from torch.nn.parallel import parallel_apply, replicate, scatter


def split_sizes(total, parts):
    return [total // parts + (i < total % parts) for i in range(parts)]


class ColumnParallelLinear(nn.Module):
    def __init__(self, in_features, out_features, devices, gather_output=True):
        super().__init__()
        self.devices = [torch.device(d) for d in devices]
        self.gather_output = gather_output
        self.shards = nn.ModuleList(nn.Linear(in_features, n).to(d)
                                    for n, d in zip(split_sizes(out_features, len(devices)), self.devices))

    def forward(self, x):
        parts = [shard(x.to(d)) for shard, d in zip(self.shards, self.devices)]
        return comm.gather(parts, dim=-1, destination=self.devices[0].index) if self.gather_output else parts

    def full_weight(self):
        return torch.cat([shard.weight for shard in self.shards], dim=0)  # raises


class RowParallelLinear(nn.Module):
    def __init__(self, in_features, out_features, devices, reduce="move"):
        super().__init__()
        self.devices = [torch.device(d) for d in devices]
        self.sizes = split_sizes(in_features, len(devices))
        self.shards = nn.ModuleList(nn.Linear(n, out_features, bias=False).to(d) for n, d in zip(self.sizes, self.devices))
        self.bias = nn.Parameter(torch.zeros(out_features, device=self.devices[0]))
        self.reduce = reduce

    def forward(self, x):
        chunks = x if isinstance(x, (list, tuple)) else x.split(self.sizes, dim=-1)
        parts = [shard(c.to(d)) for shard, c, d in zip(self.shards, chunks, self.devices)]
        if self.reduce == "move":
            out = sum(part.to(self.devices[0]) for part in parts)
        else:
            out = torch.stack([part.detach() for part in parts]).sum(0)  # raises
        return out + self.bias


class ParallelMLP(nn.Module):
    def __init__(self, dim, devices, hidden_ratio=4, **kwargs):
        super().__init__()
        self.up = ColumnParallelLinear(dim, dim * hidden_ratio, devices, gather_output=False)
        self.down = RowParallelLinear(dim * hidden_ratio, dim, devices, **kwargs)

    def forward(self, x):
        return self.down([F.gelu(part) for part in self.up(x)])


class VocabParallelEmbedding(nn.Module):
    def __init__(self, vocab_size, dim, devices):
        super().__init__()
        self.devices = [torch.device(d) for d in devices]
        self.sizes = split_sizes(vocab_size, len(devices))
        self.shards = nn.ModuleList(nn.Embedding(n, dim).to(d) for n, d in zip(self.sizes, self.devices))

    def forward(self, ids):
        out, start = 0, 0
        for shard, size, device in zip(self.shards, self.sizes, self.devices):
            local = ids.to(device) - start
            outside = (local < 0) | (local >= size)
            part = shard(local.masked_fill(outside, 0)).masked_fill(outside[..., None], 0.0)
            out = out + part.to(ids.device)
            start += size
        return out

    def lookup(self, ids):
        out, start = torch.zeros(*ids.shape, self.shards[0].embedding_dim, device=ids.device), 0
        for shard, size in zip(self.shards, self.sizes):
            inside = (ids >= start) & (ids < start + size)
            if inside.any():
                out[inside] = shard.weight.detach()[ids[inside] - start]  # raises
            start += size
        return out


def vocab_parallel_cross_entropy(logits: List[torch.Tensor], target):
    """Cross entropy of logits whose classes are split over GPUs."""
    home = target.device
    peak = torch.stack([part.amax(-1).to(home) for part in logits]).amax(0)
    total = sum((part - peak.to(part.device)[:, None]).exp().sum(-1).to(home) for part in logits)
    picked, start = torch.zeros_like(peak), 0
    for part in logits:
        local = target.to(part.device) - start
        inside = (local >= 0) & (local < part.size(-1))
        value = part.gather(1, local.clamp(0, part.size(-1) - 1)[:, None])[:, 0]
        picked = picked + (value * inside).to(home)
        start += part.size(-1)
    return (total.log() + peak - picked).mean()


class CausalStage(nn.Module):
    def __init__(self, dim, heads=2):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.norm = nn.LayerNorm(dim)
        self.register_buffer("scale", torch.tensor(1.0 / math.sqrt(2)))

    def forward(self, x):
        causal = torch.ones(x.size(1), x.size(1)).triu(1).bool().cuda()
        return self.norm(x + self.scale * self.attn(x, x, x, attn_mask=causal, need_weights=False)[0])  # raises


class FeedForwardStage(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        return x + self.net(x)


class PipelineModel(nn.Module):
    """Stage i runs on devices[i]; the head shares the weight of the embedding."""

    def __init__(self, vocab_size, dim, stages: Sequence[nn.Module], devices, long_skip=False):
        super().__init__()
        self.devices = [torch.device(d) for d in devices]
        self.embed = nn.Embedding(vocab_size, dim).to(self.devices[0])
        self.stages = nn.ModuleList(stage.to(d) for stage, d in zip(stages, self.devices))
        self.long_skip = long_skip

    def features(self, ids):
        x = skip = self.embed(ids.to(self.devices[0]))
        for stage, device in zip(self.stages, self.devices):
            x = stage(x.to(device, non_blocking=True))
        if self.long_skip:
            x = x + skip  # raises
        return x

    def forward(self, ids):
        x = self.features(ids)
        return F.linear(x.to(self.embed.weight.device), self.embed.weight)

    def score(self, ids):
        return F.linear(self.features(ids)[:, -1], self.embed.weight)  # raises

    def loss(self, ids, chunks=2):
        """Mean loss over micro-batches."""
        losses = []
        for micro in ids.chunk(chunks):
            logits = self(micro[:, :-1])
            losses.append(F.cross_entropy(logits.flatten(0, 1), micro[:, 1:].flatten().to(logits.device)))
        return torch.stack(losses).mean()


class ExpertParallel(nn.Module):
    """Top-1 mixture of experts, the experts distributed round robin."""

    def __init__(self, dim, num_experts, devices):
        super().__init__()
        self.router = nn.Linear(dim, num_experts).to(devices[0])
        self.devices = [torch.device(devices[i % len(devices)]) for i in range(num_experts)]
        self.experts = nn.ModuleList(nn.Linear(dim, dim).to(d) for d in self.devices)
        self.register_buffer("load", torch.zeros(num_experts, device=devices[0]))

    def forward(self, x):
        gate, choice = self.router(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        for i, (expert, device) in enumerate(zip(self.experts, self.devices)):
            rows = (choice == i).nonzero().flatten()
            self.load[i] += rows.numel()
            out = out.index_add(0, rows, expert(x[rows].to(device)).to(x.device) * gate[rows, None])
        return out

    def dispatch(self, x, choice):
        out = torch.empty_like(x)
        for i, (expert, device) in enumerate(zip(self.experts, self.devices)):
            where = choice.to(device) == i
            out[where] = expert(x.to(device)[where]).to(x.device)
        return out


class ShardedDropout(nn.Module):
    """Dropout that draws from one generator per GPU, reproducible whatever the order of the shards."""

    def __init__(self, p, devices, seed=0):
        super().__init__()
        self.p = p
        self.generators: Dict[torch.device, torch.Generator] = {}
        for i, d in enumerate(devices):
            self.generators[torch.device(d)] = torch.Generator(device=d).manual_seed(seed + i)

    def forward(self, x):
        generator = self.generators.get(x.device, next(iter(self.generators.values())))
        keep = torch.rand(x.shape, device=x.device, generator=generator) >= self.p
        return x * keep / (1 - self.p)


def global_grad_norm(parameters, norm_type=2.0):
    grads = [p.grad.detach() for p in parameters if p.grad is not None]
    norms = [g.norm(norm_type).to(grads[0].device) for g in grads]
    return torch.stack(norms).norm(norm_type)


def clip_by_global_norm(parameters, max_norm):
    parameters = list(parameters)
    scale = (max_norm / (global_grad_norm(parameters) + 1e-6)).clamp(max=1.0)
    for p in parameters:
        p.grad.mul_(scale)  # raises
    return scale


class OffloadedAdam:
    """Keeps master weights and moments in host memory."""

    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, pinned_grads=True):
        self.parameters, self.lr, self.betas, self.eps = list(parameters), lr, betas, eps
        self.master = [p.detach().cpu().clone() for p in self.parameters]
        self.m = [torch.zeros_like(p) for p in self.master]
        self.v = [torch.zeros_like(p) for p in self.master]
        self.pinned_grads, self.steps = pinned_grads, 0

    @torch.no_grad()
    def step(self):
        self.steps += 1
        b1, b2 = self.betas
        for p, w, m, v in zip(self.parameters, self.master, self.m, self.v):
            grad = p.grad.cpu() if self.pinned_grads else p.grad
            m.mul_(b1).add_(grad, alpha=1 - b1)  # raises
            v.mul_(b2).addcmul_(grad, grad, value=1 - b2)
            denominator = (v / (1 - b2 ** self.steps)).sqrt_().add_(self.eps)
            w.addcdiv_(m, denominator, value=-self.lr / (1 - b1 ** self.steps))
            p.copy_(w)


def data_parallel(module, x, device_ids):
    inputs = scatter(x, device_ids)
    outputs = parallel_apply(replicate(module, device_ids[:len(inputs)]), inputs)
    return comm.gather(outputs, dim=0, destination=device_ids[0])


def synchronize(modules: Sequence[nn.Module]):
    """Averages the parameters of replicas which trained on their own."""
    for group in zip(*(m.parameters() for m in modules)):
        mean = comm.reduce_add([p.detach() for p in group], destination=group[0].get_device()) / len(group)
        for p in group:
            p.data.copy_(mean)


def parameter_distance(a: nn.Module, b: nn.Module):
    return max(torch.dist(p, q).item() for p, q in zip(a.parameters(), b.parameters()))  # raises


def gather_ragged(x):
    sizes = [torch.zeros(1, dtype=torch.long) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, torch.tensor([x.size(0)], device=x.device))  # raises
    return [int(s) for s in sizes]
