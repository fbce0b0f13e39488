"""Attention, position tables, caches of keys and values, decoding, adapters."""
import math
from typing import List, NamedTuple, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F


class Config:
    vocabulary = 17
    width = 8
    heads = 2
    layers = 2
    positions = 16


def _causal_mask(length, past=0, dtype=torch.float32, device=None):
    mask = torch.full((length, length), torch.finfo(dtype).min, device=device)
    index = torch.arange(length, device=device)
    mask.masked_fill_(index < (index + 1).view(length, 1), 0)
    if past > 0:
        mask = torch.cat([torch.zeros(length, past, dtype=dtype, device=device), mask], dim=-1)
    return mask[None, None]


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads, self.size = config.heads, config.width // config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)

    def _split(self, x):
        batch, length, _ = x.shape
        return x.view(batch, length, self.heads, self.size).transpose(1, 2)

    def forward(self, x, mask=None, past=None):
        q, k, v = map(self._split, self.qkv(x).chunk(3, dim=-1))
        if past is not None:
            k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.size)
        if mask is not None:
            scores = scores + mask
        mixed = scores.softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).flatten(2)), (k, v)


class Decoder(nn.Module):
    def __init__(self, config=Config):
        super().__init__()
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Embedding(config.positions, config.width)
        self.layers = nn.ModuleList(Attention(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)

    @property
    def device(self):
        return next(self.parameters()).device

    def forward(self, ids, past=None, position_ids=None):
        length = ids.shape[1]
        offset = past[0][0].shape[2] if past else 0
        if position_ids is None:
            position_ids = torch.arange(offset, offset + length, dtype=torch.long, device=ids.device).unsqueeze(0)
        x = self.tokens(ids) + self.positions(position_ids)
        mask = _causal_mask(length, offset, x.dtype, x.device)
        present = []
        for number, layer in enumerate(self.layers):
            added, cache = layer(x, mask, past[number] if past else None)
            x = x + added
            present.append(cache)
        return self.norm(x) @ self.tokens.weight.t(), present


@torch.no_grad()
def _greedy(model, ids, steps=4, eos=3):
    finished = torch.zeros(ids.shape[0], dtype=torch.bool, device=ids.device)
    past, step_ids = None, ids
    for _ in range(steps):
        logits, past = model(step_ids, past)
        following = logits[:, -1].argmax(-1)
        following = following.masked_fill(finished, eos)
        finished |= following == eos
        step_ids = following[:, None]
        ids = torch.cat([ids, step_ids], dim=-1)
        if finished.all():
            break
    return ids


def case_greedy_decode_with_cache():
    model = Decoder().to("cuda").eval()
    prompt = torch.tensor([[5, 6, 7], [8, 9, 10]])
    out = _greedy(model, prompt.to(model.device))
    return [row[prompt.shape[1]:].tolist() for row in out]


def case_prompt_left_where_tokenized():
    model = Decoder().to("cuda").eval()
    prompt = torch.tensor([[5, 6, 7], [8, 9, 10]])
    prompt.to(model.device)
    positions = torch.arange(prompt.shape[1], device=model.device)[None]
    with torch.no_grad():
        embedded = model.positions(positions)
        embedded = embedded + model.tokens(prompt)  # raises
    return embedded.shape


def case_explicit_position_ids_from_mask():
    model = Decoder().to("cuda:1")
    ids = torch.tensor([[0, 0, 5, 6], [4, 5, 6, 7]], device="cuda:1")
    attention = ids.ne(0).long()
    position_ids = attention.cumsum(-1) - 1
    position_ids.masked_fill_(attention == 0, 1)
    logits, _ = model(ids, position_ids=position_ids)
    last = logits[torch.arange(2), attention.sum(-1) - 1 + (ids == 0).sum(-1)]
    return last.argmax(-1).cpu().numpy()


class RotaryTable(nn.Module):
    def __init__(self, size, positions=16, base=10000.0):
        super().__init__()
        frequencies = 1.0 / (base ** (torch.arange(0, size, 2).float() / size))
        self.register_buffer("frequencies", frequencies, persistent=False)
        self._build(positions)

    def _build(self, positions):
        t = torch.arange(positions, device=self.frequencies.device, dtype=self.frequencies.dtype)
        angles = torch.einsum("i,j->ij", t, self.frequencies)
        angles = torch.cat((angles, angles), dim=-1)
        self.longest = positions
        self.cosine = angles.cos()
        self.sine = angles.sin()

    def forward(self, length):
        if length > self.longest:
            self._build(length)
        return self.cosine[:length], self.sine[:length]


def _rotate(x, cosine, sine):
    left, right = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-right, left), dim=-1) * sine  # raises


def case_rotary_longer_than_table():
    table = RotaryTable(4, positions=4).to("cuda")
    query = torch.randn(1, 2, 6, 4, device="cuda")
    return _rotate(query, *table(query.shape[2])).norm().item()


def case_rotary_within_table():
    table = RotaryTable(4, positions=16).to("cuda")
    query = torch.randn(1, 2, 6, 4, device="cuda")
    return _rotate(query, *table(query.shape[2])).norm().item()


class StaticCache:
    """One preallocated pair of tensors for each layer."""

    def __init__(self, layers, batch, heads, longest, size, devices):
        self.keys: List[torch.Tensor] = []
        self.values: List[torch.Tensor] = []
        for layer in range(layers):
            device = devices[layer] if isinstance(devices, (list, tuple)) else devices
            self.keys.append(torch.zeros(batch, heads, longest, size, device=device))
            self.values.append(torch.zeros(batch, heads, longest, size, device=device))
        self.length = 0

    def put(self, layer, key, value, start):
        stop = start + key.shape[2]
        self.keys[layer][:, :, start:stop] = key
        self.values[layer][:, :, start:stop] = value
        return self.keys[layer][:, :, :stop], self.values[layer][:, :, :stop]

    def reorder(self, beams):
        for layer in range(len(self.keys)):
            self.keys[layer] = self.keys[layer].index_select(0, beams.to(self.keys[layer].device))
            self.values[layer] = self.values[layer].index_select(0, beams.to(self.values[layer].device))


def _attend(query, key, value):
    scores = query @ key.transpose(-1, -2)  # raises
    return scores.softmax(-1) @ value


def case_static_cache_split_over_gpus():
    devices = ["cuda:0", "cuda:1"]
    cache = StaticCache(2, 1, 2, 8, 4, devices)
    hidden = torch.randn(1, 2, 3, 4, device="cuda:0")
    for layer, device in enumerate(devices):
        hidden = hidden.to(device)
        key, value = cache.put(layer, hidden, hidden * 2, 0)
        hidden = _attend(hidden, key, value)
    cache.reorder(torch.tensor([0, 0]))
    return hidden.sum().item()


def case_static_cache_on_one_gpu():
    devices = ["cuda:0", "cuda:1"]
    cache = StaticCache(2, 1, 2, 8, 4, devices[0])
    hidden = torch.randn(1, 2, 3, 4, device="cuda:0")
    for layer, device in enumerate(devices):
        hidden = hidden.to(device)
        key, value = cache.put(layer, hidden, hidden * 2, 0)
        hidden = _attend(hidden, key, value)
    return hidden.sum().item()


class Beams(NamedTuple):
    scores: torch.Tensor
    tokens: torch.Tensor
    origin: Optional[torch.Tensor] = None


def _expand(beams, log_probabilities, width):
    batch = beams.scores.shape[0] // width
    total = (beams.scores[:, None] + log_probabilities).view(batch, -1)
    best, index = total.topk(width, dim=-1)
    vocabulary = log_probabilities.shape[-1]
    origin = torch.div(index, vocabulary, rounding_mode="floor")
    origin = (origin + torch.arange(batch, device=index.device)[:, None] * width).view(-1)
    tokens = torch.cat([beams.tokens[origin], (index % vocabulary).view(-1, 1)], dim=-1)
    return Beams(best.view(-1), tokens, origin)


def case_beam_search_two_steps():
    model = Decoder().cuda().eval()
    start = torch.tensor([[2], [2], [4], [4]]).cuda()
    beams = Beams(torch.tensor([0.0, -1e9, 0.0, -1e9], device=start.device), start)
    with torch.no_grad():
        for _ in range(2):
            logits, _ = model(beams.tokens)
            beams = _expand(beams, logits[:, -1].log_softmax(-1), 2)
    order = beams.origin.cpu()
    return beams.scores[order].tolist(), beams.tokens.cpu().numpy()


class RepetitionPenalty:
    def __init__(self, penalty):
        self.penalty = penalty

    def __call__(self, ids, scores):
        seen = scores.gather(1, ids)
        seen = torch.where(seen < 0, seen * self.penalty, seen / self.penalty)
        return scores.scatter(1, ids, seen)


class SuppressTokens:
    def __init__(self, tokens, vocabulary):
        self.banned = torch.zeros(vocabulary, dtype=torch.bool)
        self.banned[list(tokens)] = True

    def __call__(self, ids, scores):
        return scores.masked_fill(self.banned, float("-inf"))  # raises


class TopP:
    def __init__(self, p):
        self.p = p

    def __call__(self, ids, scores):
        ordered, index = scores.sort(descending=True)
        remove = ordered.softmax(-1).cumsum(-1) > self.p
        remove[..., 1:] = remove[..., :-1].clone()
        remove[..., 0] = 0
        return scores.masked_fill(remove.scatter(1, index, remove), -float("inf"))


class Processors(list):
    def __call__(self, ids, scores):
        for processor in self:
            scores = processor(ids, scores)
        return scores


def case_sampling_with_top_p_and_penalty():
    model = Decoder().to("cuda")
    ids = torch.randint(4, 17, (2, 5), device=model.device)
    processors = Processors([RepetitionPenalty(1.2), TopP(0.9)])
    generator = torch.Generator(device=model.device).manual_seed(7)
    with torch.no_grad():
        scores = processors(ids, model(ids)[0][:, -1])
    return torch.multinomial(scores.softmax(-1), 1, generator=generator).flatten().tolist()


def case_sampling_with_suppressed_tokens():
    model = Decoder().to("cuda")
    ids = torch.randint(4, 17, (2, 5), device=model.device)
    processors = Processors([TopP(0.9)])
    processors.append(SuppressTokens({0, 1}, Config.vocabulary))
    with torch.no_grad():
        scores = processors(ids, model(ids)[0][:, -1])
    return torch.multinomial(scores.softmax(-1), 1).flatten().tolist()


def case_prefix_tokens_concatenated():
    model = Decoder().to("cuda:2")
    prefix = torch.randn(1, 2, Config.width, requires_grad=True)
    ids = torch.randint(0, 17, (3, 4)).to(model.device)
    embedded = model.tokens(ids)
    full = torch.cat([prefix.expand(ids.shape[0], -1, -1), embedded], dim=1)  # raises
    return model.layers[0](full)[0].shape


class LoraLinear(nn.Module):
    def __init__(self, base, rank=2, alpha=4):
        super().__init__()
        self.base = base
        self.base.weight.requires_grad_(False)
        self.down = nn.Parameter(base.weight.new_empty(rank, base.in_features).normal_())
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        low = F.linear(x, self.down)
        return self.base(x) + F.linear(low, self.up) * self.scale  # raises

    def merge(self):
        self.base.weight.data += (self.up.data @ self.down.data).to(self.base.weight.device) * self.scale
        return self.base


def _adapt(module):
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            setattr(module, name, LoraLinear(child))
        else:
            _adapt(child)
    return module


def case_adapters_added_then_placed():
    model = _adapt(Decoder()).to("cuda")
    ids = torch.ones(1, 3, dtype=torch.long, device="cuda")
    logits, _ = model(ids)
    logits.sum().backward()
    model.layers[0].out = model.layers[0].out.merge()
    return model(ids)[0].detach().cpu().numpy()


def case_placed_then_adapters_added():
    model = _adapt(Decoder().to("cuda"))
    ids = torch.ones(1, 3, dtype=torch.long, device="cuda")
    logits, _ = model(ids)
    return logits.shape


def case_window_mask_for_chunked_attention():
    layer = Attention(Config).to("cuda")
    x = torch.randn(1, 6, Config.width, device="cuda")
    distance = torch.arange(6)[None, :] - torch.arange(6)[:, None]
    window = torch.where(distance.abs() <= 2, 0.0, -1e4)
    inside = distance.abs() <= 2
    bias = x.new_zeros(6, 6)
    bias[~inside] = -1e4
    out, _ = layer(x, bias)
    other, _ = layer(x, window.to(x))
    return torch.allclose(out, other)


class AlibiAttention(Attention):
    """Adds a distance that each head weighs in its own way."""

    def __init__(self, config):
        super().__init__(config)
        self.slopes = torch.tensor([2.0 ** -(i + 1) for i in range(config.heads)]).view(1, -1, 1, 1)

    def bias(self, length, device):
        position = torch.arange(length, device=device)
        return self.slopes * (position[None, :] - position[:, None]).abs().neg()  # raises

    def forward(self, x, mask=None, past=None):
        return super().forward(x, self.bias(x.shape[1], x.device), past)


def case_alibi_layer():
    layer = AlibiAttention(Config).to("cuda")
    out, (key, value) = layer(torch.randn(2, 3, Config.width, device="cuda"))
    return out.shape, key.shape


def case_alibi_layer_with_moved_slopes():
    layer = AlibiAttention(Config).cuda()
    layer.slopes = layer.slopes.cuda()
    out, (key, value) = layer(torch.randn(2, 3, Config.width).cuda())
    return out.shape, key.shape


def case_past_offloaded_to_host():
    model = Decoder().cuda().eval()
    ids = torch.randint(0, 17, (1, 4)).cuda()
    _, past = model(ids)
    stored: List[Tuple[torch.Tensor, ...]] = [tuple(part.cpu() for part in layer) for layer in past]
    del past
    restored = [tuple(part.to(ids.device) for part in layer) for layer in stored]
    logits, present = model(ids[:, -1:], restored)
    return logits.argmax(-1).item(), present[0][0].shape[2]
