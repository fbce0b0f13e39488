"""Mixture of experts and long context: routers, rotary tables, caches, stages on several cards."""
import math
from dataclasses import dataclass, replace
from typing import List, NamedTuple, Optional

import torch
import torch.nn as nn
import torch.nn.functional as F

@dataclass(frozen=True)
class ModelConfig:
    vocab: int = 32
    dim: int = 16
    heads: int = 2
    layers: int = 2
    experts: int = 4
    top_k: int = 2
    capacity_factor: float = 1.5
    max_len: int = 24
    window: Optional[int] = None
    rotary: str = "buffer"

    @property
    def head_dim(self):
        return self.dim // self.heads

class Routing(NamedTuple):
    weights: torch.Tensor
    chosen: torch.Tensor
    probs: torch.Tensor

def rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)

class RotaryBase(nn.Module):
    def __init__(self, cfg, base=10000.0):
        super().__init__()
        self.cfg = cfg
        self.setup(1.0 / base ** (torch.arange(0, cfg.head_dim, 2).float() / cfg.head_dim))

    @staticmethod
    def angles(positions, inv_freq):
        freqs = torch.outer(positions.float(), inv_freq)  # raises
        return torch.cat((freqs, freqs), dim=-1)

    def forward(self, q, k, positions):
        cos, sin = (table[None, None] for table in self.tables(positions))
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin

class BufferRotary(RotaryBase):
    def setup(self, inv_freq):
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    def tables(self, positions):
        angles = self.angles(positions, self.inv_freq)
        return angles.cos(), angles.sin()

class AttributeRotary(BufferRotary):
    def setup(self, inv_freq):
        self.inv_freq = inv_freq

class TableRotary(RotaryBase):
    """Tables of all positions; rows are taken by position."""
    def setup(self, inv_freq):
        angles = self.angles(torch.arange(self.cfg.max_len), inv_freq)
        self.cos_table, self.sin_table = angles.cos(), angles.sin()

    def tables(self, positions):
        return self.cos_table[positions], self.sin_table[positions]  # raises

class HostIndexedRotary(TableRotary):
    def tables(self, positions):
        rows = positions.cpu()
        return self.cos_table[rows].to(positions.device), self.sin_table[rows].to(positions.device)

ROTARY = {"buffer": BufferRotary, "attribute": AttributeRotary, "table": TableRotary, "host": HostIndexedRotary}

class LayerCache:
    def __init__(self):
        self.keys = self.values = None

    def __len__(self):
        return 0 if self.keys is None else self.keys.shape[2]

    def append(self, k, v):
        if self.keys is None:
            self.keys, self.values = k, v
        else:
            self.keys = torch.cat([self.keys, k], dim=2)
            self.values = torch.cat([self.values, v], dim=2)
        return self.keys, self.values

class StaticLayerCache(LayerCache):
    """Preallocated; positions are written in place."""
    def __init__(self, cfg, batch, device=None):
        super().__init__()
        self.store = torch.zeros(2, batch, cfg.heads, cfg.max_len, cfg.head_dim, device=device)
        self.used = 0

    def __len__(self):
        return self.used

    def append(self, k, v):
        stop = self.used + k.shape[2]
        self.store[0, :, :, self.used:stop] = k
        self.store[1, :, :, self.used:stop] = v
        self.used = stop
        return self.store[0, :, :, :stop], self.store[1, :, :, :stop]

class OffloadedLayerCache(LayerCache):
    def append(self, k, v):
        keys, values = super().append(k.cpu(), v.cpu())
        return keys.to(k.device), values.to(v.device)

class KVCache:
    def __init__(self, layers: List[LayerCache]):
        self.layers = layers

    @classmethod
    def build(cls, cfg, kind=LayerCache, *args, **kwargs):
        return cls([kind(*args, **kwargs) for _ in range(cfg.layers)])

    def reorder(self, beams):
        for layer in self.layers:
            layer.keys = layer.keys.index_select(0, beams)  # raises
            layer.values = layer.values.index_select(0, beams)

    def reorder_each(self, beams):
        self.reorder(beams.to(self.layers[0].keys.device))

def causal_mask(queries, keys, window=None, device=None):
    rows = torch.arange(keys - queries, keys, device=device)[:, None]
    cols = torch.arange(keys, device=device)[None]
    mask = cols <= rows
    return mask if window is None else mask & (rows - cols < window)

class Attention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim)
        self.out = nn.Linear(cfg.dim, cfg.dim)
        self.rotary = ROTARY[cfg.rotary](cfg)
        self.scale = torch.tensor(cfg.head_dim ** -0.5)

    def mask(self, queries, keys, scores):
        return causal_mask(queries, keys, self.cfg.window, scores.device)

    def forward(self, x, positions, cache=None):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.cfg.heads, -1).permute(2, 0, 3, 1, 4)
        q, k = self.rotary(q, k, positions)
        if cache is not None:
            k, v = cache.append(k, v)
        scores = q @ k.transpose(-1, -2) * self.scale  # raises
        mask = self.mask(length, k.shape[2], scores)
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)  # raises
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

class BandedAttention(Attention):
    """Takes the mask from a table made when the layer is built."""
    def __init__(self, cfg):
        super().__init__(cfg)
        self.band = causal_mask(cfg.max_len, cfg.max_len, cfg.window)

    def mask(self, queries, keys, scores):
        return self.band[keys - queries:keys, :keys]

class Router(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.gate = nn.Linear(cfg.dim, cfg.experts, bias=False)

    def logits(self, tokens):
        return self.gate(tokens)

    def forward(self, tokens):
        probs = self.logits(tokens).softmax(-1)
        weights, chosen = probs.topk(self.cfg.top_k, dim=-1)
        return Routing(weights / weights.sum(-1, keepdim=True), chosen, probs)

class BiasedRouter(Router):
    """Loss-free balancing with a bias that is moved after each batch."""
    def __init__(self, cfg):
        super().__init__(cfg)
        self.register_buffer("bias", torch.zeros(cfg.experts))

    def logits(self, tokens):
        return self.gate(tokens) + self.bias  # raises

    def rebalance(self, load, on_host=False):
        load = load.cpu() if on_host else load
        error = load.float().mean() - load.float()
        self.bias = self.bias.to(error.device) + 0.01 * error.sign()

class Expert(nn.Sequential):
    def __init__(self, cfg):
        super().__init__(nn.Linear(cfg.dim, 2 * cfg.dim), nn.GELU(), nn.Linear(2 * cfg.dim, cfg.dim))

class MoE(nn.Module):
    def __init__(self, cfg, router=None):
        super().__init__()
        self.cfg = cfg
        self.router = router or Router(cfg)
        self.experts = nn.ModuleList([Expert(cfg) for _ in range(cfg.experts)])
        self.load = torch.zeros(cfg.experts, dtype=torch.long)
        self.aux = None

    def capacity(self, count):
        return math.ceil(self.cfg.capacity_factor * count * self.cfg.top_k / self.cfg.experts)

    def spread(self, devices):
        for index, expert in enumerate(self.experts):
            expert.to(devices[index % len(devices)])
        return self

    def call(self, expert, tokens):
        return expert(tokens)  # raises

    def combine(self, out, rows, result, weight):
        return out.index_add(0, rows, result * weight)  # raises

    def forward(self, x):
        tokens = x.flatten(0, -2)
        routing = self.router(tokens)
        out = torch.zeros_like(tokens)
        for index, expert in enumerate(self.experts):
            rows, slot = (routing.chosen == index).nonzero(as_tuple=True)
            rows, slot = rows[:self.capacity(len(tokens))], slot[:self.capacity(len(tokens))]
            self.load[index] = self.load[index] + len(rows)
            if len(rows):
                out = self.combine(out, rows, self.call(expert, tokens[rows]), routing.weights[rows, slot][:, None])
        self.aux = self.balance(routing)
        return out.view_as(x)

    def balance(self, routing):
        share = F.one_hot(routing.chosen, self.cfg.experts).float().mean((0, 1))
        return self.cfg.experts * (share * routing.probs.mean(0)).sum()

class SpreadMoE(MoE):
    def call(self, expert, tokens):
        home = next(expert.parameters()).device
        return super().call(expert, tokens.to(home))

class GatheredMoE(SpreadMoE):
    def combine(self, out, rows, result, weight):
        return super().combine(out, rows, result.to(out.device), weight)

class LoadBalancingMoE(MoE):
    def target_gap(self, importance):
        target = self.load.float() / self.load.sum()
        return F.kl_div(importance.log(), target, reduction="sum")  # raises

    def balance(self, routing):
        return self.target_gap(routing.probs.mean(0))

class Block(nn.Module):
    def __init__(self, cfg, attention=Attention, moe=MoE, router=None):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(cfg.dim) for _ in range(2)])
        self.attention = attention(cfg)
        self.moe = moe(cfg, router)

    def forward(self, x, positions, cache=None):
        x = x + self.attention(self.norms[0](x), positions, cache)
        return x + self.moe(self.norms[1](x))

class Transformer(nn.Module):
    def __init__(self, cfg, **parts):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Embedding(cfg.vocab, cfg.dim)
        self.blocks = nn.ModuleList([Block(cfg, **parts) for _ in range(cfg.layers)])
        self.head = nn.Linear(cfg.dim, cfg.vocab, bias=False)

    @property
    def device(self):
        return self.embed.weight.device

    def stage(self, index):
        return next(self.blocks[index].parameters()).device

    def pipeline(self, *devices):
        self.embed.to(devices[0])
        self.head.to(devices[-1])
        for index, block in enumerate(self.blocks):
            block.to(devices[index % len(devices)])
        return self

    def forward(self, ids, cache=None):
        past = len(cache.layers[0]) if cache else 0
        x = self.embed(ids)
        for index, block in enumerate(self.blocks):
            x = x.to(self.stage(index))
            positions = torch.arange(past, past + ids.shape[1], device=x.device)
            x = block(x, positions, cache.layers[index] if cache else None)
        return self.head(x)

    def loss(self, ids, move=True):
        logits = self(ids[:, :-1])
        labels = ids[:, 1:].to(logits.device) if move else ids[:, 1:]
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten()) + 0.01 * self.aux_total()  # raises

    def aux_total(self):
        return sum(block.moe.aux.to(self.head.weight.device) for block in self.blocks)

class Sampler:
    def __init__(self, banned=(), penalty=1.2):
        self.banned, self.penalty = torch.tensor(banned, dtype=torch.long), penalty

    def __call__(self, logits, history):
        logits = logits.clone()
        seen = logits.gather(1, history)  # raises
        logits.scatter_(1, history, torch.where(seen > 0, seen / self.penalty, seen * self.penalty))
        logits[:, self.banned] = -float("inf")
        return logits.argmax(-1, keepdim=True)

@torch.no_grad()
def generate(model, ids, steps=3, cache=None, sampler=None, collect=None):
    cache = cache or KVCache.build(model.cfg)
    step, sampler = ids, sampler or Sampler(banned=(0, 3))
    history = ids if collect is None else ids.to(collect)
    for _ in range(steps):
        logits = model(step, cache)[:, -1].to(ids.device)
        step = sampler(logits, history).to(ids.device)
        history = torch.cat([history, step.to(history.device)], dim=1)
    return history

def prompt(device="cuda:0", length=5, batch=2):
    return (torch.arange(batch * length).view(batch, length) % 31).to(device)

def ready(device="cuda:0", cfg=ModelConfig(), **parts):
    torch.manual_seed(0)
    return Transformer(cfg, **parts).to(device)

def case_generate_plain():
    assert generate(ready(), prompt()).cpu().numpy().shape == (2, 8)

def case_rotary_attribute():
    ready("cuda:1", ModelConfig(rotary="attribute"))(prompt("cuda:1"))

def case_rotary_table():
    ready(cfg=ModelConfig(rotary="table"))(prompt())

def case_rotary_host_rows():
    generate(ready(cfg=ModelConfig(rotary="host")), prompt())

def case_static_cache_default():
    cfg = ModelConfig()
    generate(ready(cfg=cfg), prompt(), cache=KVCache.build(cfg, StaticLayerCache, cfg, 2))

def case_static_cache_by_stage():
    model = ready("cpu").pipeline("cuda:0", "cuda:1")
    layers = [StaticLayerCache(model.cfg, 2, model.stage(index)) for index in range(model.cfg.layers)]
    generate(model, prompt(), cache=KVCache(layers))

def case_offloaded_cache():
    generate(ready(), prompt(), cache=KVCache.build(ModelConfig(), OffloadedLayerCache))

def case_beams_two_stages():
    model = ready("cpu").pipeline("cuda:0", "cuda:1")
    cache = KVCache.build(model.cfg)
    generate(model, prompt(), cache=cache)
    cache.reorder_each(torch.tensor([1, 1]))

def case_beams_one_stage():
    cache = KVCache.build(ModelConfig())
    generate(ready("cuda:3"), prompt("cuda:3"), cache=cache)
    cache.reorder_each(torch.tensor([1, 0]))

def case_band_from_init():
    ready(cfg=ModelConfig(window=3), attention=BandedAttention)(prompt())

def case_bias_updates_on_host():
    moe = MoE(ModelConfig(), BiasedRouter(ModelConfig())).cuda()
    for _ in range(2):
        moe(torch.rand(2, 3, 16).cuda())
        moe.router.rebalance(moe.load.cuda(), on_host=True)

def case_bias_updates():
    moe = MoE(ModelConfig(), BiasedRouter(ModelConfig())).cuda()
    for _ in range(2):
        moe(torch.rand(2, 3, 16).cuda())
        moe.router.rebalance(moe.load.to(moe.router.bias.device))

def case_experts_gathered():
    GatheredMoE(replace(ModelConfig(), top_k=4)).cuda().spread(["cuda:0", "cuda:1"])(torch.rand(6, 16).cuda())

def case_experts_spread_bare():
    MoE(replace(ModelConfig(), top_k=4)).cuda().spread(["cuda:0", "cuda:1"])(torch.rand(6, 16).cuda())

def case_experts_spread_no_gather():
    SpreadMoE(replace(ModelConfig(), top_k=4)).cuda().spread([0, 1, 2, 3])(torch.rand(6, 16).cuda())

def case_load_targets():
    LoadBalancingMoE(ModelConfig()).cuda()(torch.rand(6, 16).cuda())

def case_pipeline_loss():
    ready("cpu").pipeline("cuda:2", "cuda:3").loss(prompt("cuda:2")).backward()

def case_pipeline_labels_first_stage():
    ready("cpu").pipeline("cuda:0", "cuda:3").loss(prompt("cuda:0"), move=False)

def case_history_on_host():
    generate(ready(), prompt(), collect="cpu")
