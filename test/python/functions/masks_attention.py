"""Masks and attention."""
import functools
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = "cuda:0"


def qkv(batch=2, heads=2, length=4, dim=4, device=DEVICE):
    return (torch.randn(batch, heads, length, dim, device=device) for _ in range(3))


def attend(q, k, v, bias=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if bias is not None:
        scores = scores + bias
    return scores.softmax(-1) @ v


# --- masks from lengths


def length_mask(lengths, size=None):
    size = size if size is not None else int(lengths.max())
    return torch.arange(size) < lengths[:, None]  # raises


def length_mask_like(x, lengths):
    steps = torch.arange(x.size(1), device=lengths.device, dtype=lengths.dtype)
    return steps.expand(x.size(0), -1) < lengths.unsqueeze(1)


def masked_mean(x, mask):
    mask = mask.unsqueeze(-1).type_as(x)
    return (x * mask).sum(1) / mask.sum(1).clamp(min=1)


def case_mean_over_lengths():
    lengths = torch.tensor([3, 1], device=DEVICE)
    x = torch.randn(2, 3, 4, device=DEVICE)
    return masked_mean(x, length_mask(lengths, x.size(1)))


def case_mean_over_lengths_like():
    lengths = torch.tensor([3, 1], device=DEVICE)
    x = torch.randn(2, 3, 4, device=DEVICE)
    return masked_mean(x, length_mask_like(x, lengths))


# --- cached causal masks


@functools.lru_cache(maxsize=8)
def causal(length):
    return torch.triu(torch.ones(length, length, dtype=torch.bool), diagonal=1)


@functools.lru_cache(maxsize=8)
def causal_on(length, device):
    return causal(length).to(device)


class CausalAttention(nn.Module):
    def __init__(self, dim, find_mask):
        super().__init__()
        self.find_mask = find_mask
        self.out = nn.Linear(dim, dim)

    def forward(self, q, k, v):
        scores = q @ k.transpose(-2, -1)
        scores = scores.masked_fill(self.find_mask(q), -1e9)  # raises
        return self.out(scores.softmax(-1) @ v)


def case_causal_by_length():
    layer = CausalAttention(4, lambda q: causal(q.size(-2))).to(DEVICE)
    return layer(*qkv())


def case_causal_by_length_and_device():
    layer = CausalAttention(4, lambda q: causal_on(q.size(-2), q.device)).to(DEVICE)
    return layer(*qkv()), layer(*qkv(length=5))


# --- biases


class Alibi:
    def __init__(self, heads):
        self.heads = heads

    @property
    def slopes(self):
        return torch.tensor([2.0 ** (-8 * (h + 1) / self.heads) for h in range(self.heads)])

    def bias(self, q, k):
        distance = torch.arange(k.size(-2))[None] - torch.arange(q.size(-2))[:, None]
        return (self.slopes[:, None, None] * -distance.abs()).to(q)


def case_alibi():
    q, k, v = qkv(heads=2)
    return attend(q, k, v, Alibi(2).bias(q, k))


class WindowBias(nn.Module):
    """Swin's table, looked up by the pairs' relative positions."""

    def __init__(self, window, heads):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(2 * window - 1, heads))
        at = torch.arange(window)
        self.pairs = at[:, None] - at[None] + window - 1

    def forward(self, q, k, v):
        return attend(q, k, v, self.table[self.pairs].permute(2, 0, 1))


def case_window_bias():
    return WindowBias(4, 2).to(DEVICE)(*qkv()).sum().backward()


class ShiftedWindows(nn.Module):
    def __init__(self, length, shifts=(0, 1)):
        super().__init__()
        self.by_shift = {s: self._build(length, s) for s in shifts}

    @staticmethod
    def _build(length, shift):
        region = (torch.arange(length) >= length - shift).long()
        return (region[:, None] != region[None]).float() * -100.0 if shift else None

    def forward(self, q, k, v, shift):
        bias = self.by_shift[shift]
        if bias is None:
            return attend(q, k, v)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k)
        return torch.einsum("bhqk,bhkd->bhqd", scores.add_(bias).softmax(-1), v)  # raises


def case_windows_unshifted():
    return ShiftedWindows(4).to(DEVICE)(*qkv(), shift=0)


def case_windows_shifted():
    return ShiftedWindows(4).to(DEVICE)(*qkv(), shift=1)


# --- the library's attention


class SelfAttention(nn.Module):
    def __init__(self, dim=8, heads=2, pad=0):
        super().__init__()
        self.pad = pad
        self.embed = nn.Embedding(10, dim, padding_idx=pad)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)

    def forward(self, rows):
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        empty = ids == self.pad
        x = self.embed(ids.to(self.embed.weight.device))
        return self.attn(x, x, x, key_padding_mask=empty)[0]  # raises


def case_multihead_padding():
    rows = [torch.tensor([1, 2, 3]), torch.tensor([4])]
    return SelfAttention().to(DEVICE)(rows)


def case_multihead_square_mask():
    layer = nn.MultiheadAttention(8, 2).to(DEVICE)
    x = torch.randn(5, 2, 8, device=DEVICE)
    square = torch.triu(torch.full((5, 5), float("-inf")), diagonal=1)
    return layer(x, x, x, attn_mask=square.to(x.device))[0]


# --- sparse patterns made with numpy


def strided_pattern(length, stride):
    rows, columns = np.indices((length, length))
    return (rows >= columns) & ((rows - columns) % stride == 0)


def sparse_attend(q, k, v, stride=2):
    scores = q @ k.transpose(-2, -1)
    pattern = torch.from_numpy(strided_pattern(q.size(-2), stride))
    scores = torch.where(pattern, scores, torch.full_like(scores, -1e9))  # raises
    return scores.softmax(-1) @ v


def case_strided():
    return sparse_attend(*qkv())


def case_select_hidden_by_cpu_mask():
    hidden = torch.randn(2, 4, 8, device=DEVICE)
    keep = torch.from_numpy(strided_pattern(4, 2)[:2])
    return nn.Linear(8, 3).to(DEVICE)(hidden[keep])


# --- caches of keys and values


class KeyValueCache:
    def __init__(self, shape, make=torch.zeros):
        self.keys, self.values = make(*shape), make(*shape)
        self.used = 0

    def extend(self, k, v):
        start, self.used = self.used, self.used + k.size(-2)
        self.keys[:, :, start:self.used] = k
        self.values[:, :, start:self.used] = v
        return self.keys[:, :, :self.used], self.values[:, :, :self.used]


def decode_steps(cache, steps=3):
    outputs = []
    for _ in range(steps):
        q, k, v = qkv(length=1)
        keys, values = cache.extend(k, v)
        weights = F.softmax(q.matmul(keys.transpose(-2, -1)), dim=-1)  # raises
        outputs.append(weights.matmul(values))
    return torch.cat(outputs, dim=-2)


def case_incremental():
    return decode_steps(KeyValueCache((2, 2, 8, 4)))


def case_incremental_on_device():
    make = functools.partial(torch.zeros, device=DEVICE)
    return decode_steps(KeyValueCache((2, 2, 8, 4), make))


# --- combined masks and defaults


def combine(*masks):
    present = [m for m in masks if m is not None]
    return functools.reduce(torch.logical_and, present)  # raises


def decoder_mask(ids, pad=0):
    future = ~causal(ids.size(1))
    return combine(future[None], (ids != pad)[:, None])


def case_decoder_mask():
    return decoder_mask(torch.tensor([[1, 2, 0]], device=DEVICE))


def case_decoder_mask_on_cpu():
    return decoder_mask(torch.tensor([[1, 2, 0]])).to(DEVICE)


def pool(hidden, weights=torch.tensor([0.4, 0.3, 0.2, 0.1]), scale=torch.tensor(2.0)):
    if hidden.size(1) == len(weights):
        return scale * torch.einsum("btd,t->bd", hidden, weights)  # raises
    return scale * hidden.mean(1)


def case_pool_uniform():
    return pool(torch.randn(2, 3, 8, device=DEVICE))


def case_pool_weighted():
    return pool(torch.randn(2, 4, 8, device=DEVICE))
