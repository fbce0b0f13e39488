"""Serving of tensor programs: placement, batching, caches, adapters, generation, monitors."""
from collections import OrderedDict, deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

Payload = Union[np.ndarray, torch.Tensor, List[float]]


@dataclass
class ServingConfig:
    vocab: int = 13
    width: int = 8
    heads: int = 2
    max_batch: int = 4
    max_len: int = 12
    pad: int = 0
    eos: int = 1
    buckets: Tuple[int, ...] = (4, 8, 12)
    devices: Tuple[str, ...] = ("cuda:0",)


@dataclass
class Request:
    uid: int
    payload: Payload
    options: Dict[str, Any] = field(default_factory=dict)

    def tensor(self, dtype=None) -> torch.Tensor:
        return torch.as_tensor(self.payload, dtype=dtype)


@dataclass
class Response:
    uid: int
    value: np.ndarray


class Placement:
    def __init__(self, devices: Sequence[str]):
        self.devices = [torch.device(d) for d in devices]
        self.load: Dict[torch.device, int] = {d: 0 for d in self.devices}
        self.where: Dict[str, torch.device] = {}

    def assign(self, name: str, module: nn.Module) -> nn.Module:
        if name not in self.where:
            self.where[name] = min(self.devices, key=self.load.__getitem__)
            self.load[self.where[name]] += sum(p.numel() for p in module.parameters())
        return module.to(self.where[name])

    def __getitem__(self, name: str) -> torch.device:
        return self.where.get(name, self.devices[0])


class Stage:
    def __init__(self, device=None):
        self.device = torch.device(device) if device is not None else None

    def __call__(self, data: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
        return {**data, **self.run(data)}

    def run(self, data):
        raise NotImplementedError


class Upload(Stage):
    def run(self, data):
        return {k: v.to(self.device, non_blocking=True) for k, v in data.items() if torch.is_tensor(v)}


class Standardize(Stage):
    def __init__(self, mean: Sequence[float], std: Sequence[float], device=None):
        super().__init__(device)
        self.mean, self.std = (torch.tensor(v, device=self.device) for v in (mean, std))

    def run(self, data):
        return {"x": (data["x"] - self.mean) / self.std}


class Clip(Stage):
    def __init__(self, warmup: int = 2, device=None):
        super().__init__(device)
        self.seen: Deque[torch.Tensor] = deque(maxlen=warmup)

    def run(self, data):
        x = data["x"]
        if len(self.seen) < self.seen.maxlen:
            self.seen.append(x.detach().amax(0).cpu())
            return {}
        return {"x": torch.minimum(x, torch.stack(tuple(self.seen)).amax(0))}  # raises


class OutlierTag(Stage):
    def run(self, data):
        far = data["x"].abs().amax(-1) > torch.tensor(3.0)
        return {"outlier": far, "count": far.sum().cpu()}


class Pipeline:
    def __init__(self, *stages: Stage):
        self.stages = stages

    def __call__(self, **data):
        for stage in self.stages:
            data = stage(data)
        return data


class Batcher:
    def __init__(self, config: ServingConfig):
        self.config = config
        self.queue: Deque[Request] = deque()

    def submit(self, request: Request):
        self.queue.append(request)

    def take(self) -> List[Request]:
        count = min(self.config.max_batch, len(self.queue))
        return sorted((self.queue.popleft() for _ in range(count)), key=lambda r: len(r.payload))

    def bucket(self, length: int) -> int:
        return next((size for size in self.config.buckets if size >= length), self.config.max_len)

    def pad(self, requests: Sequence[Request], device) -> Tuple[torch.Tensor, torch.Tensor]:
        size = self.bucket(max(len(r.payload) for r in requests))
        tokens = torch.full((len(requests), size), self.config.pad, dtype=torch.long)
        for row, request in enumerate(requests):
            value = request.tensor(torch.long)
            tokens[row, :len(value)] = value
        lengths = torch.tensor([len(r.payload) for r in requests])
        return tokens.to(device), lengths

    def unpad(self, values, lengths) -> List[np.ndarray]:
        return [row[:n].detach().cpu().numpy() for row, n in zip(values, lengths.tolist())]

    def last(self, values, lengths):
        rows = torch.arange(len(values))
        return values[rows, lengths - 1]

    def masked_mean(self, values, lengths):
        mask = torch.arange(values.shape[1], device=values.device)[None] < lengths[:, None]  # raises
        return (values * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


class KVCache:
    def __init__(self, batch: int, heads: int, dim: int, block: int = 4, device=None):
        self.block, self.length = block, 0
        self.keys = torch.zeros(batch, heads, 0, dim, device=device)
        self.values = torch.zeros(batch, heads, 0, dim, device=device)

    def _grow(self, extra: int):
        while self.keys.shape[2] < self.length + extra:
            self.keys = F.pad(self.keys, (0, 0, 0, self.block))
            self.values = F.pad(self.values, (0, 0, 0, self.block))

    def append(self, k, v):
        if self.keys.device != k.device:
            self.keys, self.values = self.keys.to(k.device), self.values.to(k.device)
        self._grow(k.shape[2])
        window = slice(self.length, self.length + k.shape[2])
        self.keys[:, :, window], self.values[:, :, window] = k, v
        self.length += k.shape[2]
        return self.keys[:, :, :self.length], self.values[:, :, :self.length]

    def reorder(self, parents: Sequence[int]):
        order = torch.tensor(parents)
        self.keys = self.keys[order]
        self.values = self.values[order]

    def compact(self, alive: Sequence[bool]):
        rows = torch.tensor([i for i, flag in enumerate(alive) if flag])
        self.keys, self.values = (x.index_select(0, rows) for x in (self.keys, self.values))  # raises


class RotaryTable(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.register_buffer("inverse", 1.0 / 100 ** (torch.arange(0, dim, 2).float() / dim), persistent=False)
        self.cos = self.sin = None

    def ensure(self, size: int, device):
        if self.cos is None or len(self.cos) < size:
            angles = torch.arange(size).float()[:, None] * self.inverse.cpu()
            self.cos, self.sin = angles.cos(), angles.sin()
        return self.cos.to(device), self.sin.to(device)

    def forward(self, x, start: int = 0):
        cos, sin = (t[start:] for t in self.ensure(start + x.shape[-2], x.device))
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def rotate_at(self, x, positions):
        self.ensure(int(positions.max()) + 1, x.device)
        cos, sin = self.cos[positions.cpu()], self.sin[positions.cpu()]
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)  # raises


class TinyDecoder(nn.Module):
    def __init__(self, config: ServingConfig):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab, config.width)
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.proj = nn.Linear(config.width, config.width)
        self.rotary = RotaryTable(config.width // config.heads)
        self.norm = nn.LayerNorm(config.width)

    def forward(self, tokens, cache: Optional[KVCache] = None):
        b, n = tokens.shape
        x = self.embed(tokens)
        split = self.qkv(self.norm(x)).view(b, n, 3, self.config.heads, -1).permute(2, 0, 3, 1, 4)
        start = cache.length if cache is not None else 0
        q, k, v = self.rotary(split[0], start), self.rotary(split[1], start), split[2]
        if cache is not None:
            k, v = cache.append(k, v)
        scores = q @ k.transpose(-1, -2) / k.shape[-1] ** 0.5
        causal = torch.ones(n, k.shape[2], dtype=torch.bool).tril(k.shape[2] - n)
        scores = scores.masked_fill(~causal.to(scores.device), float("-inf"))
        x = x + self.proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, -1))
        return F.linear(x, self.embed.weight)


class LogitsRule:
    def __call__(self, logits, history):
        raise NotImplementedError


class RepetitionRule(LogitsRule):
    def __init__(self, penalty: float = 1.3):
        self.penalty = penalty

    def __call__(self, logits, history):
        chosen = logits.gather(1, history)
        chosen = torch.where(chosen > 0, chosen / self.penalty, chosen * self.penalty)
        return logits.scatter(1, history, chosen)


class BanRule(LogitsRule):
    def __init__(self, banned: Sequence[int]):
        self.banned = torch.tensor(list(banned))

    def __call__(self, logits, history):
        logits = logits.clone()
        logits[:, self.banned] = float("-inf")
        return logits


class BoostRule(LogitsRule):
    def __init__(self, biases: Dict[int, float]):
        self.tokens = torch.tensor(list(biases))
        self.values = torch.tensor(list(biases.values()))

    def __call__(self, logits, history):
        return logits.index_add(1, self.tokens.to(logits.device), self.values.expand(len(logits), -1))  # raises


class Generator:
    def __init__(self, model: TinyDecoder, rules: Sequence[LogitsRule] = (), seed: Optional[int] = None):
        self.model, self.rules, self.config = model, list(rules), model.config
        self.random = None if seed is None else torch.Generator().manual_seed(seed)

    @property
    def device(self):
        return self.model.embed.weight.device

    def pick(self, logits):
        if self.random is None:
            return logits.argmax(-1)
        probs = logits.softmax(-1).cpu()
        return torch.multinomial(probs, 1, generator=self.random).squeeze(1).to(logits.device)

    @torch.no_grad()
    def generate(self, prompts: List[List[int]], steps: int = 4) -> torch.Tensor:
        history = torch.tensor(prompts).to(self.device)
        cache = KVCache(len(prompts), self.config.heads, self.config.width // self.config.heads)
        done = torch.zeros(len(prompts), dtype=torch.bool, device=self.device)
        fresh = history
        for _ in range(steps):
            logits = self.model(fresh, cache)[:, -1]
            for rule in self.rules:
                logits = rule(logits, history)
            token = self.pick(logits).masked_fill(done, self.config.pad)
            done = done | (token == self.config.eos)
            fresh = token[:, None]
            history = torch.cat([history, fresh], 1)
        return history.cpu()

    @torch.no_grad()
    def score(self, prompt: List[int], choices: List[List[int]]) -> List[float]:
        out = []
        for choice in choices:
            tokens = torch.tensor([prompt + choice], device=self.device)
            logp = self.model(tokens)[0, len(prompt) - 1:-1].log_softmax(-1)
            out.append(logp.gather(1, torch.tensor(choice)[:, None]).sum().item())  # raises
        return out


class AdapterBank(nn.Module):
    def __init__(self, base: nn.Linear, rank: int = 2):
        super().__init__()
        self.base, self.rank = base, rank
        self.adapters: "OrderedDict[str, Tuple[torch.Tensor, torch.Tensor]]" = OrderedDict()

    def load(self, tenant: str, state: Dict[str, np.ndarray]):
        down, up = (torch.from_numpy(state[name]) for name in ("down", "up"))
        self.adapters[tenant] = (down.to(self.base.weight.device), up.to(self.base.weight.device))

    def load_random(self, tenant: str, scale: float = 0.1):
        down = torch.randn(self.rank, self.base.in_features) * scale
        self.adapters[tenant] = (down, self.base.weight.new_zeros(self.base.out_features, self.rank))

    def forward(self, x, tenants: Sequence[Optional[str]]):
        y = self.base(x)
        rows = [self._delta(row, tenant) for row, tenant in zip(x, tenants)]
        return y + torch.stack(rows)

    def _delta(self, row, tenant):
        if tenant not in self.adapters:
            return torch.zeros(self.base.out_features, device=row.device)
        down, up = self.adapters[tenant]
        return up @ (down @ row)  # raises


class ShardedTable(nn.Module):
    def __init__(self, rows: int, width: int, devices: Sequence[str]):
        super().__init__()
        self.size = -(-rows // len(devices))
        self.shards = [torch.randn(self.size, width, device=d) for d in devices]

    def forward(self, ids):
        out = torch.zeros(ids.shape + self.shards[0].shape[1:], device=ids.device)
        for number, shard in enumerate(self.shards):
            mine = ids // self.size == number
            local = (ids[mine] - number * self.size).to(shard.device)
            out[mine] = shard[local].to(ids.device)
        return out

    def similar(self, query, top: int = 2):
        best = [(query.to(shard.device) @ shard.t()).topk(top, dim=1) for shard in self.shards]
        values = torch.cat([part.values for part in best], 1)  # raises
        return values.topk(top, dim=1)


class ResponseCache:
    def __init__(self, capacity: int = 8):
        self.capacity = capacity
        self.entries: "OrderedDict[bytes, torch.Tensor]" = OrderedDict()

    def through(self, tokens: torch.Tensor, compute: Callable[[torch.Tensor], torch.Tensor]):
        keys = [row.cpu().numpy().tobytes() for row in tokens]
        missing = [i for i, key in enumerate(keys) if key not in self.entries]
        if missing:
            for i, value in zip(missing, compute(tokens[missing]).detach().cpu()):
                self.entries[keys[i]] = value
        joined = torch.stack([self.entries[key] for key in keys])
        while len(self.entries) > self.capacity:
            self.entries.popitem(last=False)
        return joined.to(tokens.device)


class ShadowMonitor:
    def __init__(self, primary: nn.Module, candidate: nn.Module):
        self.primary, self.candidate = primary, candidate
        self.drift: List[float] = []

    @contextmanager
    def both(self, tokens):
        served = self.primary(tokens)
        yield served, self.candidate(tokens.to(next(self.candidate.parameters()).device))

    def agreement(self, tokens) -> float:
        with self.both(tokens) as (served, shadow):
            return float(np.mean(served.argmax(-1).cpu().numpy() == shadow.argmax(-1).cpu().numpy()))

    def record(self, tokens):
        with self.both(tokens) as (served, shadow):
            gap = F.kl_div(shadow.log_softmax(-1), served.softmax(-1), reduction="batchmean")  # raises
        self.drift.append(gap.item())


class Server:
    def __init__(self, config: ServingConfig, model: TinyDecoder):
        self.config, self.batcher = config, Batcher(config)
        self.placement = Placement(config.devices)
        self.model = self.placement.assign("decoder", model).eval()
        self.cache = ResponseCache()

    @torch.no_grad()
    def step(self) -> List[Response]:
        requests = self.batcher.take()
        tokens, lengths = self.batcher.pad(requests, self.placement["decoder"])
        logits = self.cache.through(tokens, self.model)
        return [Response(r.uid, value)
                for r, value in zip(requests, self.batcher.unpad(logits, lengths))]
