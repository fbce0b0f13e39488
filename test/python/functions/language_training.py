"""Training of a small language model: data, model, adapters, loop, checkpoints and generation."""
import copy
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, EOS, VOCAB = 0, 1, 17

@dataclass
class TrainConfig:
    dim: int = 8
    heads: int = 2
    length: int = 12
    accumulate: int = 2
    device: str = "cuda:0"
    positions: str = "sinusoid"

class PackedMeta(NamedTuple):
    segments: torch.Tensor
    positions: torch.Tensor

class Features(dict):
    def to(self, device):
        for key, value in self.items():
            self[key] = value.to(device) if hasattr(value, "to") else value
        return self

def send(data: Any, device):
    if isinstance(data, torch.Tensor):
        return data.to(device, non_blocking=True)
    if isinstance(data, Mapping):
        return type(data)({k: send(v, device) for k, v in data.items()})
    if type(data) in (list, tuple):
        return type(data)(send(each, device) for each in data)
    return data

class Corpus:
    def __init__(self, count=6, seed=0):
        rng = np.random.RandomState(seed)
        self.rows = [rng.randint(2, VOCAB, size=rng.randint(3, 7)) for _ in range(count)]

    def padded(self):
        width = max(map(len, self.rows))
        ids = torch.full((len(self.rows), width), PAD, dtype=torch.long)
        for i, row in enumerate(self.rows):
            ids[i, :len(row)] = torch.from_numpy(row)
        return {"input_ids": ids, "labels": ids.masked_fill(ids == PAD, -100)}

    def packed(self):
        lengths = torch.tensor([len(row) for row in self.rows[:2]])
        ids = torch.from_numpy(np.concatenate(self.rows[:2]))[None]
        segments = torch.repeat_interleave(torch.arange(len(lengths)), lengths)[None]
        starts = (lengths.cumsum(0) - lengths)[segments]
        meta = PackedMeta(segments, torch.arange(ids.shape[1])[None] - starts)
        return {"input_ids": ids, "labels": ids.clone(), "meta": meta}

class SinusoidPositions(nn.Module):
    def __init__(self, config):
        super().__init__()
        rate = torch.exp(torch.arange(0, config.dim, 2) * (-math.log(1e4) / config.dim))
        angle = torch.arange(4 * config.length)[:, None] * rate
        self.register_buffer("table", torch.stack([angle.sin(), angle.cos()], -1).flatten(1), persistent=False)

    def forward(self, positions):
        return self.table[positions]

class LearnedPositions(nn.Embedding):
    def __init__(self, config):
        super().__init__(4 * config.length, config.dim)

    def forward(self, positions):
        return super().forward(positions)  # raises

class CausalMaskCache:
    def __init__(self):
        self.masks: Dict[int, torch.Tensor] = {}

    def get(self, length, like):
        if length not in self.masks:
            self.masks[length] = torch.ones(length, length, device=like.device).tril().bool()
        return self.masks[length]

class Attention(nn.Module):
    def __init__(self, config, cache):
        super().__init__()
        self.heads, self.cache = config.heads, cache
        self.qkv, self.out = nn.Linear(config.dim, 3 * config.dim), nn.Linear(config.dim, config.dim)

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, x, past=None, segments=None):
        q, k, v = map(self.split, self.qkv(x).chunk(3, -1))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        keep = self.cache.get(k.shape[2], x)[-q.shape[2]:]
        if segments is not None:
            same = segments[:, None, :, None] == segments[:, None, None, :]
            scores = scores.masked_fill(~same.to(scores.device), -1e4)
        scores = torch.where(keep, scores, scores.new_full((), -1e4))  # raises
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return self.out(mixed), (k, v)

class LanguageModel(nn.Module):
    POSITIONS = {"sinusoid": SinusoidPositions, "learned": LearnedPositions}

    def __init__(self, config, cache=None):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(VOCAB, config.dim, padding_idx=PAD)
        self.positions = self.POSITIONS[config.positions](config)
        self.attention = Attention(config, cache or CausalMaskCache())
        self.norm, self.head = nn.LayerNorm(config.dim), nn.Linear(config.dim, VOCAB, bias=False)
        self.head.weight = self.embed.weight

    @property
    def device(self):
        return self.embed.weight.device

    def forward(self, input_ids, meta: Optional[PackedMeta] = None, past=None):
        start = 0 if past is None else past[0].shape[2]
        where = torch.arange(start, start + input_ids.shape[1], device=self.device)[None]
        x = self.embed(input_ids) + self.positions(where if meta is None else meta.positions)
        mixed, past = self.attention(self.norm(x), past, None if meta is None else meta.segments)
        return self.head(x + mixed), past

class LoraLinear(nn.Module):
    def __init__(self, base, rank=2, alpha=4.0):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / rank
        self.down, self.up = self.build(base, rank)

    def build(self, base, rank):
        like = dict(device=base.weight.device, dtype=base.weight.dtype)
        return (nn.Parameter(torch.randn(rank, base.in_features, **like) * 0.1),
                nn.Parameter(torch.zeros(base.out_features, rank, **like)))

    def forward(self, x):
        delta = self.scale * self.up @ self.down
        return self.base(x) + F.linear(x, delta)  # raises

    def merged(self):
        made = copy.deepcopy(self.base)
        made.weight.data += (self.scale * self.up @ self.down).to(made.weight)
        return made

class DefaultLora(LoraLinear):
    def build(self, base, rank):
        return nn.Parameter(torch.randn(rank, base.in_features)), nn.Parameter(torch.zeros(base.out_features, rank))

def add_adapters(model, kind=LoraLinear, names=("qkv", "out")):
    for name in names:
        setattr(model.attention, name, kind(getattr(model.attention, name)))
    return model

class SmoothedLoss:
    def __init__(self, smoothing=0.1, counts=None):
        self.smoothing = smoothing
        self.prior = None if counts is None else torch.as_tensor(counts, dtype=torch.float32) / float(np.sum(counts))

    def __call__(self, logits, labels):
        logits, labels = logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
        nll = F.cross_entropy(logits, labels, ignore_index=-100)  # raises
        logp = logits.log_softmax(-1)
        spread = -logp.mean(-1) if self.prior is None else -(logp * self.prior).sum(-1)  # raises
        return (1 - self.smoothing) * nll + self.smoothing * spread[labels != -100].mean()

class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, beta=0.9):
        super().__init__(params, dict(lr=lr, beta=beta))
        self.moments: List[torch.Tensor] = []

    @torch.no_grad()
    def step(self, closure=None):
        params = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        self.moments = self.moments or [torch.zeros_like(p) for p in params]
        for p, m in zip(params, self.moments):
            m.lerp_(p.grad, 1 - self.defaults["beta"])  # raises
            p.add_(m.sign(), alpha=-self.defaults["lr"])

    def state_dict(self):
        return {"moments": [m.clone() for m in self.moments]}

    def load_state_dict(self, state):
        self.moments = list(state["moments"])

class Ema:
    def __init__(self, model, decay=0.9, device=None):
        self.decay, self.device = decay, device
        self.shadow = {k: v.detach().clone().to(device or v.device) for k, v in model.state_dict().items()}

    def update(self, model):
        for key, value in model.state_dict().items():
            value = value if self.device is None else value.to(self.device)
            self.shadow[key].mul_(self.decay).add_(value, alpha=1 - self.decay)  # raises

    def copy_to(self, model):
        with torch.no_grad():
            for key, value in model.state_dict().items():
                value.copy_(self.shadow[key])

class TokenMeter:
    def __init__(self, start=0):
        self.tokens, self.losses = start, []

    def count(self, labels):
        self.tokens += (labels != -100).sum()  # raises

    def perplexity(self):
        return float(torch.stack(self.losses).mean().exp())

    def chart(self):
        return np.array([np.exp(each) for each in self.losses])  # raises

class Trainer:
    def __init__(self, config, model=None, loss=None, optimizer=torch.optim.Adam, mover=send):
        self.config, self.mover = config, mover
        self.model = (model or LanguageModel(config)).to(config.device)
        self.loss, self.meter = loss or SmoothedLoss(), TokenMeter()
        self.optimizer = optimizer([p for p in self.model.parameters() if p.requires_grad], lr=1e-2)

    def forward(self, batch):
        batch = self.mover(batch, self.config.device)
        logits, _ = self.model(batch["input_ids"], batch.get("meta"))
        return self.loss(logits, batch["labels"]), batch["labels"]

    def train(self, batches):
        for i, batch in enumerate(batches):
            loss, labels = self.forward(batch)
            (loss / self.config.accumulate).backward()
            self.meter.count(labels)
            self.meter.losses.append(loss.detach())
            if (i + 1) % self.config.accumulate == 0:
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=True)
        return self.meter.perplexity()

    @torch.no_grad()
    def evaluate(self, batches):
        return float(np.mean([self.forward(batch)[0].item() for batch in batches]))

    def save(self):
        stream = io.BytesIO()
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, stream)
        return io.BytesIO(stream.getvalue())

    def resume(self, stream):
        state = torch.load(stream, map_location="cpu")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        return self

class Generator:
    def __init__(self, model, temperature=1.0, penalty=None, stops=(EOS,), banned=None):
        self.model, self.temperature, self.penalty = model.eval(), temperature, penalty
        self.stops, self.banned = torch.tensor(stops), banned

    def started(self, ids):
        return ids.new_ones(ids.shape[0])

    def adjust(self, logits, seen):
        logits = logits / self.temperature
        if self.penalty is not None:
            logits = logits.scatter(1, seen, logits.gather(1, seen) - self.penalty)
        return logits

    def pick(self, logits):
        if self.banned is not None:
            logits = logits.index_fill(1, self.banned, -1e4)  # raises
        return torch.multinomial(logits.softmax(-1), 1).squeeze(1)

    @torch.no_grad()
    def __call__(self, ids, steps=4):
        ids = ids.to(self.model.device)
        live, past, current = self.started(ids), None, ids
        for _ in range(steps):
            logits, past = self.model(current, past=past)
            token = self.pick(self.adjust(logits[:, -1], ids))
            token = token * live + PAD * (1 - live)  # raises
            live = live * (token[:, None] != self.stops.to(token.device)).all(-1).long()
            ids, current = torch.cat([ids, token[:, None]], 1), token[:, None]
        return ids.tolist()

class Greedy(Generator):
    def started(self, ids):
        return torch.ones(len(ids), dtype=torch.long)

    def pick(self, logits):
        return logits.argmax(-1)

def case_train_padded():
    trainer = Trainer(TrainConfig())
    trainer.train([Corpus().padded()] * 2)
    trainer.evaluate([Corpus(3, seed=1).padded()])

def case_train_features():
    Trainer(TrainConfig(), mover=lambda batch, device: Features(batch).to(device)).train([Corpus().padded()] * 2)

def case_inputs_only():
    def move(batch, device):
        return {**batch, "input_ids": batch["input_ids"].to(device)}
    Trainer(TrainConfig(), mover=move).train([Corpus().padded()])

def case_packed_table():
    Trainer(TrainConfig()).train([Corpus().packed()])

def case_packed_learned():
    Trainer(TrainConfig(positions="learned")).train([Corpus().padded()])
    Trainer(TrainConfig(positions="learned")).train([Corpus().packed()])

def case_unigram_smoothing():
    loss = SmoothedLoss(counts=np.arange(1, VOCAB + 1))
    Trainer(TrainConfig(device="cpu"), loss=loss).train([Corpus().padded()])
    Trainer(TrainConfig(), loss=loss).evaluate([Corpus().padded()])

def case_shared_mask_cache():
    cache, corpus = CausalMaskCache(), Corpus()
    model = LanguageModel(TrainConfig(), cache)
    model(corpus.padded()["input_ids"])
    Trainer(model.config, model).evaluate([corpus.padded()])

def case_mask_cache_other_length():
    model = LanguageModel(TrainConfig())
    model(torch.ones(1, 30, dtype=torch.long))
    Trainer(model.config, model).evaluate([Corpus().padded()])

def case_lora_then_move():
    Trainer(TrainConfig(), add_adapters(LanguageModel(TrainConfig()), DefaultLora)).train([Corpus().padded()] * 2)

def case_lora_after_move():
    trainer = Trainer(TrainConfig())
    add_adapters(trainer.model)
    trainer.evaluate([Corpus().padded()])

def case_lora_of_default_device():
    trainer = Trainer(TrainConfig())
    add_adapters(trainer.model, DefaultLora, names=("out",))
    trainer.model.attention.out.merged()
    trainer.evaluate([Corpus().padded()])

def case_ema_before_move():
    model = LanguageModel(TrainConfig())
    ema = Ema(model)
    Ema(copy.deepcopy(model)).update(model)
    Trainer(model.config, model).train([Corpus().padded()])
    ema.copy_to(model)
    ema.update(model)

def case_ema_on_cpu():
    trainer = Trainer(TrainConfig())
    ema = Ema(trainer.model, device="cpu")
    trainer.train([Corpus().padded()] * 2)
    ema.update(trainer.model)
    ema.copy_to(trainer.model)

def case_resume_adam():
    trainer, batches = Trainer(TrainConfig()), [Corpus().padded()] * 2
    trainer.train(batches)
    Trainer(TrainConfig(device="cuda:1")).resume(trainer.save()).train(batches)

def case_resume_lion():
    trainer, batches = Trainer(TrainConfig(), optimizer=Lion), [Corpus().padded()] * 2
    trainer.train(batches)
    Trainer(TrainConfig(device="cpu"), optimizer=Lion).resume(trainer.save()).train(batches)
    Trainer(TrainConfig(), optimizer=Lion).resume(trainer.save()).train(batches)

def case_meter_from_tensor():
    trainer = Trainer(TrainConfig())
    trainer.meter = TokenMeter(start=torch.zeros((), dtype=torch.long))
    trainer.train([Corpus().padded()])

def case_meter_chart():
    meter = TokenMeter()
    meter.losses.append(torch.tensor(1.0))
    meter.chart()
    trainer = Trainer(TrainConfig())
    trainer.train([Corpus().padded()])
    trainer.meter.chart()

def case_sample():
    model = LanguageModel(TrainConfig()).to("cuda:1")
    Generator(model, torch.tensor(0.7), penalty=torch.tensor(0.5))(Corpus().padded()["input_ids"][:2, :3])

def case_sample_banned():
    model, prompt = LanguageModel(TrainConfig()).to("cuda:0"), torch.tensor([[3, 4]])
    Generator(model, banned=prompt.new_tensor([PAD]).to(model.device))(prompt)
    Generator(model, banned=prompt.to(model.device).cpu().unique())(prompt)

def case_greedy():
    prompt = torch.tensor([[3, 4], [5, 6]])
    for device in ("cpu", "cuda:0"):
        Greedy(LanguageModel(TrainConfig()).to(device))(prompt)
