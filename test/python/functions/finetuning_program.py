"""Finetunes a small language model: adapters, sharded layers, generation with a cache."""
import copy
import math
from dataclasses import dataclass, replace
from typing import Callable, Dict, List, Optional, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class ModelArgs:
    vocab: int = 23
    width: int = 8
    heads: int = 2
    layers: int = 2
    max_len: int = 16
    devices: Tuple[str, ...] = ("cuda:0",)

    def place(self, layer):
        return torch.device(self.devices[layer * len(self.devices) // self.layers])


def to_device(tree, device):
    if hasattr(tree, "to"):
        return tree.to(device)
    if isinstance(tree, dict):
        return {key: to_device(value, device) for key, value in tree.items()}
    if isinstance(tree, (tuple, list)):
        return type(tree)(to_device(value, device) for value in tree)
    return tree


class Rotary(nn.Module):
    def __init__(self, dim, max_len):
        super().__init__()
        inverse = 1.0 / 100 ** (torch.arange(0, dim, 2).float() / dim)
        self.register_buffer("inverse", inverse, persistent=False)
        self.max_len = max_len
        self._table = None

    def table(self):
        if self._table is None:
            angles = torch.outer(torch.arange(self.max_len, device=self.inverse.device).float(), self.inverse)
            self._table = torch.cat([angles.cos(), angles.sin()], -1)
        return self._table

    def forward(self, states, start=0):
        cos, sin = self.table()[start:start + states.size(-2)].chunk(2, -1)
        even, odd = states.chunk(2, -1)
        return torch.cat([even * cos - odd * sin, even * sin + odd * cos], -1)  # raises


class LoRA(nn.Module):
    """Wraps a frozen linear layer."""

    def __init__(self, base, rank=2, alpha=4.0):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, base.in_features) * 0.02)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scaling = alpha / rank

    def delta(self):
        return self.up @ self.down * self.scaling

    def forward(self, states):
        return self.base(states) + F.linear(F.linear(states, self.down), self.up) * self.scaling  # raises

    def merge(self):
        self.base.weight.data += self.delta().data.to(self.base.weight.device)
        return self.base


class Block(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.heads = args.heads
        self.norm = nn.LayerNorm(args.width)
        self.qkv = nn.Linear(args.width, 3 * args.width)
        self.out = nn.Linear(args.width, args.width)
        self.mlp = nn.Sequential(nn.LayerNorm(args.width), nn.Linear(args.width, 16), nn.GELU(), nn.Linear(16, args.width))
        self.rotary = Rotary(args.width // args.heads, args.max_len)

    def shape(self, states):
        return states.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, states, mask=None, cache=None, layer=0):
        query, key, value = map(self.shape, self.qkv(self.norm(states)).chunk(3, -1))
        start = cache.length(layer) if cache is not None else 0
        query, key = self.rotary(query, start), self.rotary(key, start)
        if cache is not None:
            key, value = cache.update(layer, key, value)
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.size(-1))
        if mask is not None:
            scores = scores.masked_fill(mask, float("-inf"))
        states = states + self.out((scores.softmax(-1) @ value).transpose(1, 2).flatten(2))
        return states + self.mlp(states)


class KVCache:
    def __init__(self):
        self.entries: Dict[int, Tuple[torch.Tensor, torch.Tensor]] = {}

    def length(self, layer):
        return self.entries[layer][0].size(2) if layer in self.entries else 0

    def update(self, layer, key, value):
        if layer in self.entries:
            old_key, old_value = self.entries[layer]
            key = torch.cat([old_key, key], 2)  # raises
            value = torch.cat([old_value, value], 2)
        self.entries[layer] = (key, value)
        return key, value

    def map(self, function: Callable):
        self.entries = {layer: tuple(function(each) for each in pair) for layer, pair in self.entries.items()}
        return self

    def reorder(self, beams):
        return self.map(lambda each: each[beams])


class StaticCache(KVCache):
    def __init__(self, args, batch):
        super().__init__()
        shape = (batch, args.heads, args.max_len, args.width // args.heads)
        self.room = [[torch.zeros(shape, device=args.place(each)) for _ in range(2)] for each in range(args.layers)]
        self.filled = [0] * args.layers

    def length(self, layer):
        return self.filled[layer]

    def update(self, layer, key, value):
        start, stop = self.filled[layer], self.filled[layer] + key.size(2)
        for room, fresh in zip(self.room[layer], (key, value)):
            room[:, :, start:stop] = fresh
        self.filled[layer] = stop
        return tuple(room[:, :, :stop] for room in self.room[layer])


class ShardedModel(nn.Module):
    def __init__(self, args):
        super().__init__()
        torch.manual_seed(0)
        self.args = args
        self.tokens = nn.Embedding(args.vocab, args.width)
        self.blocks = nn.ModuleList(Block(args) for _ in range(args.layers))
        self.norm = nn.LayerNorm(args.width)

    @property
    def input_device(self):
        return self.tokens.weight.device

    def dispatch(self):
        self.tokens.to(self.args.place(0))
        for layer, block in enumerate(self.blocks):
            block.to(self.args.place(layer))
        self.norm.to(self.args.place(self.args.layers - 1))
        return self

    def mask(self, length, total):
        return torch.ones(length, total, dtype=torch.bool, device=self.input_device).triu(total - length + 1)

    def hidden(self, ids, cache=None):
        states = self.tokens(ids)
        mask = self.mask(ids.size(1), ids.size(1) + (cache.length(0) if cache is not None else 0))
        for layer, block in enumerate(self.blocks):
            place = self.args.place(layer)
            states = block(states.to(place), mask.to(place), cache, layer)
        return self.norm(states)

    def forward(self, ids, cache=None):
        return F.linear(self.hidden(ids, cache).to(self.input_device), self.tokens.weight)

    def tied_logits(self, ids):
        return torch.einsum("btd,vd->btv", self.hidden(ids), self.tokens.weight)  # raises


def add_adapters(model, follow=True):
    for block in model.blocks:
        adapter = LoRA(block.qkv)
        block.qkv = adapter.to(adapter.base.weight.device) if follow else adapter
    return model


class Collator:
    def __init__(self, pad=0, ignore=-100):
        self.pad, self.ignore = pad, ignore

    def __call__(self, samples: List[List[int]]):
        ids = nn.utils.rnn.pad_sequence([torch.tensor(each) for each in samples], True, self.pad)
        return {"ids": ids, "labels": ids.masked_fill(ids == self.pad, self.ignore), "size": len(samples)}


class Objective:
    """Next token loss; the variants share the shift."""

    def __init__(self, vocab, token_weights: Optional[np.ndarray] = None):
        self.vocab = vocab
        self.token_weights = None if token_weights is None else torch.from_numpy(token_weights).float()

    def shift(self, logits, labels):
        return logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()

    def __call__(self, logits, batch):
        flat, target = self.shift(logits, batch["labels"])
        return F.cross_entropy(flat, target, weight=self.token_weights)  # raises

    def per_sample(self, logits, batch):
        logprob = logits[:, :-1].log_softmax(-1)
        kept = batch["labels"][:, 1:] != -100
        picked = logprob.gather(-1, batch["labels"][:, 1:].clamp(min=0).unsqueeze(-1)).squeeze(-1)
        return (picked * kept).sum(-1)


class PreferenceTrainer:
    """DPO against a frozen copy, kept for scoring."""

    def __init__(self, model, reference_device=None, beta=0.1):
        self.model, self.beta = model, beta
        self.reference = copy.deepcopy(model).requires_grad_(False)
        self.objective = Objective(model.args.vocab)
        if reference_device:
            self.reference.args = replace(model.args, devices=(reference_device,))
            self.reference.dispatch()

    @torch.no_grad()
    def reference_score(self, batch):
        place = self.reference.input_device
        return self.objective.per_sample(self.reference(batch["ids"].to(place)), to_device(batch, place))

    def margin(self, batch, back=True):
        score = self.objective.per_sample(self.model(batch["ids"]), batch)
        reference = self.reference_score(batch)
        if back:
            reference = reference.to(score.device)
        return self.beta * (score - reference)  # raises

    def step(self, chosen, rejected):
        return -F.logsigmoid(self.margin(chosen) - self.margin(rejected)).mean()


class Warper:
    def __init__(self, vocab, banned=(), bias: Optional[Dict[int, float]] = None):
        self.banned = torch.tensor(banned, dtype=torch.long)
        self.bias = torch.zeros(vocab)
        for token, value in (bias or {}).items():
            self.bias[token] = value

    def ban(self, logits):
        logits[:, self.banned] = float("-inf")
        return logits

    def penalize(self, logits, ids, strength=1.3):
        picked = logits.gather(1, ids)
        return logits.scatter(1, ids, torch.where(picked < 0, picked * strength, picked / strength))

    def shift(self, logits):
        return logits.add(self.bias)  # raises


class Generator:
    def __init__(self, model, warper=None, seed=None, cache: Callable = KVCache):
        self.model, self.warper = model, warper
        self.rng = None if seed is None else torch.Generator().manual_seed(seed)
        self.make_cache = cache

    @torch.no_grad()
    def run(self, ids, count=3, pick="greedy"):
        cache, fresh = self.make_cache(), ids
        for _ in range(count):
            logits = self.model(fresh, cache)[:, -1]
            if self.warper:
                logits = self.warper.penalize(self.warper.ban(logits), ids)
            fresh = getattr(self, pick)(logits)
            ids = torch.cat([ids, fresh], 1)
        return ids

    def greedy(self, logits):
        return logits.argmax(-1, keepdim=True)

    def sample(self, logits):
        return torch.multinomial(logits.softmax(-1), 1, generator=self.rng)  # raises

    def sample_host(self, logits):
        return torch.multinomial(logits.softmax(-1).cpu(), 1, generator=self.rng).to(logits.device)

    def finish(self, ids, stop=5):
        done = torch.zeros(len(ids), dtype=torch.bool)
        for column in ids.unbind(1):
            done |= column == stop  # raises
        return done.tolist()


TWO = ModelArgs(devices=("cuda:0", "cuda:1"))


def _model(args=ModelArgs()):
    return ShardedModel(args).dispatch()


def _batch(device="cuda:0"):
    return to_device(Collator()([[3, 4, 5, 6], [7, 8]]), device)


def _trained(model):
    Objective(23)(model(_batch()["ids"]), _batch()).backward()
    return model


def case_train_step_of_shards():
    model = ShardedModel(TWO)
    optimizer = torch.optim.AdamW(model.parameters())
    _trained(model.dispatch())
    optimizer.step()


def case_adapters_after_dispatch():
    return add_adapters(_model(), follow=False)(_batch()["ids"])


def case_adapters_before_dispatch():
    return add_adapters(ShardedModel(TWO), follow=False).dispatch()(_batch()["ids"])


def case_merge_adapters():
    model = add_adapters(_model(), follow=False)
    for block in model.blocks:
        block.qkv = block.qkv.merge()
    return model(_batch()["ids"])


def case_tied_head():
    return _model(TWO).tied_logits(_batch()["ids"])


def case_redispatch_after_use():
    model = _model()
    model(_batch()["ids"])
    model.args = replace(model.args, devices=("cuda:2",))
    return model.dispatch()(_batch("cuda:2")["ids"])


def case_token_weights():
    return Objective(23, np.ones(23))(_model()(_batch()["ids"]), _batch())


def case_preference_on_other_gpu():
    return PreferenceTrainer(_model(), "cuda:3").step(_batch(), _batch()).backward()


def case_margin_not_brought_back():
    return PreferenceTrainer(_model(), "cuda:3").margin(_batch(), back=False)


def case_margin_same_gpu():
    return PreferenceTrainer(_model()).margin(_batch(), back=False)


def case_greedy_with_bans():
    return Generator(_model(TWO), Warper(23, banned=(1, 2))).run(_batch()["ids"])


def case_static_cache():
    return Generator(_model(TWO), cache=lambda: StaticCache(TWO, 2)).run(_batch()["ids"], 2)


def case_offloaded_cache():
    model, cache = _model(), KVCache()
    model(_batch()["ids"], cache)
    cache.map(torch.Tensor.cpu)
    return model(_batch()["ids"][:, -1:], cache)


def case_cache_back_before_use():
    model, cache = _model(), KVCache()
    model(_batch()["ids"], cache)
    cache.map(torch.Tensor.cpu).reorder(torch.tensor([1, 0])).map(torch.Tensor.cuda)
    return model(_batch()["ids"][:, -1:], cache)


def case_sampling_with_seed():
    return Generator(_model(), seed=3).run(_batch()["ids"], pick="sample")


def case_sampling_unseeded_and_host():
    free = Generator(_model()).run(_batch()["ids"], pick="sample")
    return Generator(_model(), seed=3).run(free, pick="sample_host").cpu().numpy()


def case_stop_tokens():
    return Generator(_model()).finish(Generator(_model()).run(_batch()["ids"]))


def case_logit_bias():
    return Warper(23, bias={3: 2.0}).shift(_model()(_batch()["ids"])[:, -1])
