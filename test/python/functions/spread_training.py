import copy
import math
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import cycle
from typing import Dict, List, Optional

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

@dataclass
class Topology:
    devices: List[str] = field(default_factory=lambda: [f"cuda:{i}" for i in range(4)])
    vocab: int = 16
    dim: int = 8
    layers: int = 4

    @property
    def first(self):
        return torch.device(self.devices[0])

    @property
    def last(self):
        return torch.device(self.devices[-1])

    def placement(self):
        per = math.ceil(self.layers / len(self.devices))
        return {i: self.devices[i // per] for i in range(self.layers)}

def device_of(module):
    return next(module.parameters()).device

class RelativeBias(nn.Module):
    def __init__(self, buckets=6):
        super().__init__()
        self.table = nn.Embedding(2 * buckets + 1, 1)
        self.buckets = buckets

    def forward(self, n):
        rel = (torch.arange(n)[None] - torch.arange(n)[:, None]).clamp(-self.buckets, self.buckets) + self.buckets
        return self.table(rel.to(self.table.weight.device))[..., 0]

class Layer(nn.Module):
    def __init__(self, dim, has_bias):
        super().__init__()
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.bias = RelativeBias() if has_bias else None

    def forward(self, x, past=None, position_bias=None):
        q, k, v = self.qkv(x).chunk(3, -1)
        if past is not None:
            k, v = torch.cat([past[0], k], 1), torch.cat([past[1], v], 1)
        scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
        if position_bias is None and self.bias is not None:
            position_bias = self.bias(k.shape[1])[-q.shape[1]:]
        if position_bias is not None:
            scores = scores + position_bias  # raises
        return x + self.out(scores.softmax(-1) @ v), (k, v), position_bias

class SpreadLM(nn.Module):
    def __init__(self, topo, bias="none", tied=False, carry_bias=True):
        super().__init__()
        self.topo, self.carry_bias, self.tied = topo, carry_bias, tied
        self.embed = nn.Embedding(topo.vocab, topo.dim).to(topo.first)
        self.blocks = nn.ModuleList(Layer(topo.dim, bias == "all" or (bias == "first" and i == 0)).to(d)
                                    for i, d in topo.placement().items())
        self.norm = nn.LayerNorm(topo.dim).to(topo.last)
        self.head = None if tied else nn.Linear(topo.dim, topo.vocab, bias=False).to(topo.last)

    def unembed(self, h):
        if self.tied:
            return F.linear(h, self.embed.weight)  # raises
        return self.head(h)

    def forward(self, ids, past: Optional[list] = None):
        h, bias, present = self.embed(ids.to(self.topo.first)), None, []
        for block, old in zip(self.blocks, past or cycle([None])):
            d = device_of(block)
            if bias is not None and self.carry_bias:
                bias = bias.to(d)
            h, kv, bias = block(h.to(d), old, bias)
            present.append(kv)
        return self.unembed(self.norm(h.to(self.topo.last))), present

    @staticmethod
    def reorder(past, beam_idx, per_layer=True):
        out = []
        for k, v in past:
            idx = beam_idx.to(k.device) if per_layer else beam_idx
            out.append((k.index_select(0, idx), v.index_select(0, idx)))  # raises
        return out

def beam_search(model, ids, beams=2, steps=2, per_layer=True):
    ids, past = ids.repeat_interleave(beams, 0), None
    for _ in range(steps):
        logits, past = model(ids if past is None else ids[:, -1:], past)
        flat = logits[:, -1].log_softmax(-1).view(1, -1).topk(beams).indices[0]
        beam, token = torch.div(flat, model.topo.vocab, rounding_mode="floor"), flat % model.topo.vocab
        ids = torch.cat([ids[beam.cpu()], token[:, None].to(ids.device)], 1)
        past = model.reorder(past, beam, per_layer)
    return ids

class ShardedEmbedding(nn.Module):
    def __init__(self, topo, bring=True):
        super().__init__()
        self.per = topo.vocab // len(topo.devices)
        self.shards = nn.ModuleList(nn.Embedding(self.per, topo.dim).to(d) for d in topo.devices)
        self.dim, self.bring = topo.dim, bring

    def forward(self, ids):
        out = torch.zeros(*ids.shape, self.dim, device=ids.device)
        for i, shard in enumerate(self.shards):
            mine = torch.div(ids, self.per, rounding_mode="floor") == i
            local = (ids[mine] - i * self.per).to(shard.weight.device)
            rows = shard(local)
            out[mine] = rows.to(out.device) if self.bring else rows  # raises
        return out

class VocabParallelLoss:
    def __init__(self, topo, target_follows=True):
        self.per = topo.vocab // len(topo.devices)
        self.target_follows = target_follows

    def split(self, logits, topo):
        return [part.to(d) for part, d in zip(logits.split(self.per, -1), topo.devices)]

    def __call__(self, parts, target):
        home = parts[0].device
        peak = torch.stack([p.max(-1).values.to(home) for p in parts]).max(0).values
        total, picked = 0, 0
        for i, part in enumerate(parts):
            total = total + (part - peak.to(part.device)[:, None]).exp().sum(-1).to(home)
            t = target.to(part.device) if self.target_follows else target
            inside = (t >= i * self.per) & (t < (i + 1) * self.per)
            score = part.gather(1, (t - i * self.per).clamp(0, self.per - 1)[:, None])[:, 0]  # raises
            picked = picked + (score * inside).to(home)
        return (total.log() + peak - picked).mean()

class OffloadAdam:
    def __init__(self, params, lr=0.01, betas=(0.9, 0.99), stage_grads=True):
        self.params = [p for p in params if p.grad is not None]
        self.lr, self.betas, self.stage_grads, self.t = lr, betas, stage_grads, 0
        self.master = [p.detach().cpu().clone() for p in self.params]
        self.m = [torch.zeros_like(w) for w in self.master]
        self.v = [torch.zeros_like(w) for w in self.master]

    def step(self):
        self.t += 1
        b1, b2 = self.betas
        for p, w, m, v in zip(self.params, self.master, self.m, self.v):
            g = p.grad.cpu() if self.stage_grads else p.grad
            m.mul_(b1).add_(g, alpha=1 - b1)  # raises
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            w -= self.lr * (m / (1 - b1 ** self.t)) / ((v / (1 - b2 ** self.t)).sqrt() + 1e-8)
            p.data.copy_(w)

class Clipper:
    def __init__(self, max_norm):
        self.max_norm = max_norm

    def norm(self, grads):
        return torch.stack([g.norm() for g in grads]).norm()  # raises

    def clip(self, params):
        grads = [p.grad for p in params if p.grad is not None]
        total = self.norm(grads)
        scale = (self.max_norm / (total + 1e-6)).clamp(max=1.0)
        for g in grads:
            g.mul_(scale)
        return float(total)

class GroupedClipper(Clipper):
    def norm(self, grads):
        groups = defaultdict(list)
        for g in grads:
            groups[g.device].append(g.norm())
        return torch.stack([torch.stack(v).norm().cpu() for v in groups.values()]).norm()

class Replicas:
    def __init__(self, build, devices):
        origin = build()
        self.models = [copy.deepcopy(origin).to(d) for d in devices]
        self.residual: Dict[str, torch.Tensor] = {}

    def backward(self, x, y):
        outs = []
        for model, xs, ys in zip(self.models, x.chunk(len(self.models)), y.chunk(len(self.models))):
            d = device_of(model)
            outs.append(model(xs.to(d)))
            F.mse_loss(outs[-1], ys.to(d)).backward()
        return outs

    def average_flat(self):
        flats = [_flatten_dense_tensors([p.grad for p in m.parameters()]) for m in self.models]
        mean = torch.stack([f.to(flats[0].device) for f in flats]).mean(0)
        for grads in ([p.grad for p in m.parameters()] for m in self.models):
            for g, new in zip(grads, _unflatten_dense_tensors(mean, grads)):
                g.copy_(new)

    def average_named(self):
        for group in zip(*(m.parameters() for m in self.models)):
            mean = sum(p.grad for p in group) / len(group)  # raises
            for p in group:
                p.grad.copy_(mean)

    def ring(self):
        for group in zip(*(m.parameters() for m in self.models)):
            for i in range(1, len(group)):
                group[i].grad.add_(group[i - 1].grad.to(group[i].device))
            for p in group[:-1]:
                p.grad.copy_(group[-1].grad)

    def compress(self, keyed_by_device=False, keep=0.5):
        for m in self.models:
            for name, p in m.named_parameters():
                key = f"{name}@{p.device}" if keyed_by_device else name
                g = p.grad + self.residual.get(key, 0.0)  # raises
                bar = g.abs().flatten().quantile(keep)
                sparse = g * (g.abs() >= bar)
                self.residual[key] = g - sparse
                p.grad.copy_(sparse)

class ParameterServer:
    def __init__(self, model, lr=0.1):
        self.model, self.lr, self.version = model, lr, torch.tensor(0)
        self.params = dict(model.named_parameters())

    def pull(self):
        return {k: v.detach().clone() for k, v in self.params.items()}

    @torch.no_grad()
    def push(self, grads, version):
        stale = (self.version - version).clamp(min=0) + 1
        for name, g in grads.items():
            self.params[name] -= self.lr * g / stale  # raises
        self.version += 1

class Worker:
    def __init__(self, server, build, device, upload=None):
        self.server, self.device, self.upload = server, device, upload
        self.model = build().to(device)

    def work(self, x, y):
        self.model.load_state_dict(self.server.pull())
        version = self.server.version.clone()
        loss = F.mse_loss(self.model(x.to(self.device)), y.to(self.device))
        grads = torch.autograd.grad(loss, list(self.model.parameters()))
        named = dict(zip((n for n, _ in self.model.named_parameters()), grads))
        self.server.push({k: g if self.upload is None else g.to(self.upload) for k, g in named.items()}, version)

class OffloadedRun(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, run, back):
        ctx.run, ctx.home = run, x.device if back else torch.device("cpu")
        ctx.save_for_backward(x.detach().cpu())
        with torch.no_grad():
            return run(x)

    @staticmethod
    def backward(ctx, grad):
        x = ctx.saved_tensors[0].to(ctx.home).requires_grad_()
        with torch.enable_grad():
            out = ctx.run(x)  # raises
        out.backward(grad)
        return x.grad, None, None

class Stage(nn.Module):
    def __init__(self, net, index, workspace_index=None):
        super().__init__()
        self.net, self.device = net.to(f"cuda:{index}"), torch.device("cuda", index)
        with torch.cuda.device(index if workspace_index is None else workspace_index):
            self.scratch = torch.ones(net.out_features, device="cuda")

    def forward(self, x):
        return torch.tanh(self.net(x.to(self.device))) * self.scratch  # raises

class Pipeline:
    def __init__(self, stages, micro=2):
        self.stages, self.micro = stages, micro

    def schedule(self, x):
        queue, done = [(0, part) for part in x.chunk(self.micro)], []
        while queue:
            i, h = queue.pop(0)
            h = self.stages[i](h)
            (queue if i + 1 < len(self.stages) else done).append((i + 1, h))
        return torch.cat([h for _, h in done])

def tokens(topo, n=3, length=4):
    return torch.randint(0, topo.vocab, (n, length), generator=torch.Generator().manual_seed(0))

def small():
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))

def language_step(**kw):
    topo = Topology()
    model, ids = SpreadLM(topo, **kw), tokens(topo)
    logits, _ = model(ids)
    F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten().to(topo.last)).backward()
    return model

def case_spread_step():
    torch.optim.SGD(language_step().parameters(), lr=0.1).step()

def case_shared_bias_follows():
    language_step(bias="first")

def case_shared_bias_stays():
    language_step(bias="first", carry_bias=False)

def case_tied_head():
    language_step(tied=True)

def case_beam_reorder():
    topo = Topology()
    return beam_search(SpreadLM(topo).eval(), tokens(topo, 1)).tolist()

def case_beam_reorder_same_index():
    topo = Topology()
    beam_search(SpreadLM(topo).eval(), tokens(topo, 1), per_layer=False)

def case_sharded_lookup():
    topo = Topology()
    ShardedEmbedding(topo)(torch.arange(16).to(topo.first)).sum().backward()

def case_sharded_lookup_rows_left():
    topo = Topology()
    ShardedEmbedding(topo, bring=False)(torch.arange(16).to(topo.first))

def vocab_loss(**kw):
    topo = Topology()
    logits = torch.randn(3, topo.vocab, device=topo.first, requires_grad=True)
    loss = VocabParallelLoss(topo, **kw)
    loss(loss.split(logits, topo), torch.tensor([1, 9, 15], device=topo.first)).backward()

def case_vocab_parallel():
    vocab_loss()

def case_vocab_parallel_target_home():
    vocab_loss(target_follows=False)

def case_offload_adam():
    OffloadAdam(language_step().parameters()).step()

def case_offload_adam_direct():
    OffloadAdam(language_step().parameters(), stage_grads=False).step()

def case_clip_all():
    Clipper(1.0).clip(language_step().parameters())

def case_clip_grouped():
    return GroupedClipper(1.0).clip(language_step().parameters())

def replicated():
    replicas = Replicas(small, ["cuda:0", "cuda:2"])
    replicas.backward(torch.randn(4, 4), torch.randn(4, 2))
    return replicas

def case_replicas_flat_and_ring():
    replicas = replicated()
    replicas.average_flat()
    replicas.ring()

def case_replicas_named():
    replicated().average_named()

def case_replicas_compressed():
    replicated().compress()

def case_replicas_compressed_keyed():
    replicated().compress(keyed_by_device=True)

def served(upload):
    server = ParameterServer(small())
    for i in range(2):
        Worker(server, small, f"cuda:{i}", upload).work(torch.randn(2, 4), torch.randn(2, 2))

def case_server_uploaded():
    served("cpu")

def case_server_not_uploaded():
    served(None)

def recomputed(back):
    x = torch.randn(2, 4, device="cuda:1", requires_grad=True)
    OffloadedRun.apply(x, small().to("cuda:1"), back).sum().backward()

def case_recompute_from_host():
    recomputed(back=True)

def case_recompute_on_host():
    recomputed(back=False)

def case_pipeline():
    Pipeline([Stage(nn.Linear(4, 4), i) for i in range(3)]).schedule(torch.randn(4, 4)).sum().backward()

def case_pipeline_workspace_elsewhere():
    Pipeline([Stage(nn.Linear(4, 4), i, workspace_index=0) for i in range(2)]).schedule(torch.randn(4, 4))
