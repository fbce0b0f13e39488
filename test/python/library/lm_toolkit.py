"""Batching, masking, scoring and decoding helpers for language models."""
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import List, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

IGNORE_INDEX = -100


@dataclass
class CausalCollator:
    pad_token_id: int = 0
    max_length: Optional[int] = None

    def __call__(self, features: List[dict]):
        ids = [torch.as_tensor(f["input_ids"])[:self.max_length] for f in features]
        input_ids = pad_sequence(ids, batch_first=True, padding_value=self.pad_token_id)
        lengths = torch.tensor([len(x) for x in ids])
        attention_mask = (torch.arange(input_ids.size(1))[None] < lengths[:, None]).to(input_ids.device)
        labels = input_ids.masked_fill(~attention_mask, IGNORE_INDEX)
        return {"input_ids": input_ids, "attention_mask": attention_mask.long(), "labels": labels}


@dataclass
class MaskedLMCollator:
    vocab_size: int
    mask_token_id: int = 1
    mlm_probability: float = 0.15
    special_ids: tuple = (0, 1, 2)

    def select(self, input_ids):
        probability = torch.full(input_ids.shape, self.mlm_probability)
        for special in self.special_ids:
            probability.masked_fill_(input_ids.eq(special), 0.0)  # raises
        return torch.bernoulli(probability).bool()

    def corrupt(self, input_ids, masked):
        labels = input_ids.clone()
        labels[~masked] = IGNORE_INDEX
        replaced = torch.bernoulli(torch.full(labels.shape, 0.8)).bool() & masked.cpu()
        inputs = input_ids.clone()
        inputs[replaced] = self.mask_token_id
        randomized = torch.bernoulli(torch.full(labels.shape, 0.5)).bool() & masked.cpu() & ~replaced
        random_words = torch.randint(self.vocab_size, labels.shape)
        inputs[randomized] = random_words[randomized]  # raises
        return inputs, labels


def pack_documents(documents, block_size, eos_id=2):
    eos = documents[0].new_tensor([eos_id])
    stream = torch.cat([piece for doc in documents for piece in (doc, eos)])
    return stream[:stream.numel() // block_size * block_size].view(-1, block_size)


def unpad(hidden, attention_mask):
    lengths = attention_mask.sum(-1, dtype=torch.int32)
    indices = attention_mask.flatten().nonzero().flatten()
    cu_seqlens = F.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0))
    return hidden.flatten(0, 1)[indices], indices, cu_seqlens


def packed_position_ids(cu_seqlens):
    lengths = cu_seqlens[1:] - cu_seqlens[:-1]
    starts = cu_seqlens[:-1].repeat_interleave(lengths)
    return torch.arange(int(cu_seqlens[-1])) - starts  # raises


def packed_segment_ids(cu_seqlens):
    lengths = (cu_seqlens[1:] - cu_seqlens[:-1]).tolist()
    return torch.cat([torch.full((n,), i, device=cu_seqlens.device) for i, n in enumerate(lengths)])


def block_diagonal_mask(segment_ids):
    same = segment_ids[:, None] == segment_ids[None]
    return same & torch.ones_like(same).tril()


_CAUSAL_MASKS = {}


def cached_causal_mask(size, device):
    if size not in _CAUSAL_MASKS:
        _CAUSAL_MASKS[size] = torch.full((size, size), float("-inf"), device=device).triu(1)
    return _CAUSAL_MASKS[size]


@lru_cache(maxsize=16)
def alibi_slopes(num_heads):
    return torch.tensor([2.0 ** (-8.0 * (i + 1) / num_heads) for i in range(num_heads)])


def alibi_bias(num_heads, size, device):
    distance = torch.arange(size, device=device)[None] - torch.arange(size, device=device)[:, None]
    return alibi_slopes(num_heads).to(device)[:, None, None] * distance.clamp(max=0)


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
        scores = scores + cached_causal_mask(t, x.device)  # raises
        scores = scores + alibi_bias(self.heads, t, x.device)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))


class TransformerLM(nn.Module):
    def __init__(self, vocab_size, dim=16, heads=2, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, dim)
        self.layers = nn.ModuleList(SelfAttention(dim, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)

    def forward(self, input_ids):
        x = self.embed(input_ids)
        for layer in self.layers:
            x = x + layer(x)
        return F.linear(self.norm(x), self.embed.weight)


class RecurrentLM(nn.Module):
    def __init__(self, vocab_size, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.rnn = nn.LSTM(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab_size)

    def init_hidden(self, batch_size):
        return tuple(self.head.weight.new_zeros(1, batch_size, self.rnn.hidden_size) for _ in range(2))

    def forward(self, input_ids, hidden=None):
        out, hidden = self.rnn(self.embed(input_ids), hidden or self.init_hidden(input_ids.size(0)))
        return self.head(out), hidden

    def encode(self, input_ids, attention_mask):
        lengths = attention_mask.sum(dim=1)
        packed = pack_padded_sequence(self.embed(input_ids), lengths, batch_first=True, enforce_sorted=False)  # raises
        return pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0]


def shifted_loss(logits, labels, reduction="mean"):
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORE_INDEX, reduction=reduction)


class TokenWeightedLoss(nn.Module):
    def __init__(self, counts, power=0.5):
        super().__init__()
        self.table = torch.as_tensor(counts, dtype=torch.float).clamp(min=1).pow(-power)

    def forward(self, logits, labels):
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
        return (loss * self.table[labels.flatten()]).mean()  # raises


def sequence_logps(logits, labels):
    labels, keep = labels[:, 1:].clone(), labels[:, 1:] != IGNORE_INDEX
    labels[~keep] = 0
    per_token = logits[:, :-1].log_softmax(-1).gather(2, labels.unsqueeze(2)).squeeze(2)
    return (per_token * keep).sum(-1)


class PreferenceTrainer:
    def __init__(self, model, ref_model, beta=0.1):
        self.model, self.ref_model, self.beta = model, ref_model, beta
        self._reference = {}

    @torch.no_grad()
    def precompute(self, batches):
        for i, batch in enumerate(batches):
            self._reference[i] = sequence_logps(self.ref_model(batch["input_ids"]), batch["labels"]).cpu()

    def loss(self, index, batch):
        ratios = sequence_logps(self.model(batch["input_ids"]), batch["labels"]) - self._reference[index]  # raises
        chosen, rejected = ratios.chunk(2)
        return -F.logsigmoid(self.beta * (chosen - rejected)).mean()


class PerplexityMeter:
    def __init__(self):
        self.nll, self.tokens = 0.0, 0
        self.bits = torch.zeros(1)

    def update(self, logits, labels):
        self.nll += shifted_loss(logits, labels, reduction="sum").item()
        self.tokens += (labels[:, 1:] != IGNORE_INDEX).sum()

    def update_bits(self, logits, labels):
        self.bits += shifted_loss(logits, labels, reduction="sum").detach() / math.log(2)  # raises

    def compute(self):
        return math.exp(self.nll / int(self.tokens))


@torch.no_grad()
def strided_perplexity(model, input_ids, max_length=16, stride=8):
    nlls, previous_end = [], 0
    for begin in range(0, input_ids.size(1) - stride, stride):
        end = min(begin + max_length, input_ids.size(1))
        window = input_ids[:, begin:end]
        target = window.clone()
        target[:, :-(end - previous_end)] = IGNORE_INDEX
        nlls.append(shifted_loss(model(window), target) * (end - previous_end))
        previous_end = end
    return torch.exp(torch.stack(nlls).sum() / torch.tensor(end)).item()


def unigram_entropy(input_ids, vocab_size):
    p = np.bincount(input_ids.flatten(), minlength=vocab_size) / input_ids.numel()  # raises
    return float(-(p[p > 0] * np.log(p[p > 0])).sum())


def top_p_filter(logits, top_p=0.9):
    ordered, index = logits.sort(descending=True)
    remove = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1) > top_p
    return logits.masked_fill(remove.scatter(-1, index, remove), float("-inf"))


class StopOnTokens:
    def __init__(self, stop_ids):
        self.stop_ids = torch.tensor(stop_ids)

    def __call__(self, input_ids):
        return torch.isin(input_ids[:, -1], self.stop_ids).all().item()  # raises


@torch.no_grad()
def generate(model, input_ids, max_new_tokens=4, stop=None, banned=()):
    for _ in range(max_new_tokens):
        logits = model(input_ids)[:, -1]
        logits[:, torch.tensor(banned, dtype=torch.long)] = float("-inf")
        following = torch.multinomial(top_p_filter(logits).softmax(-1), 1)
        input_ids = torch.cat([input_ids, following], dim=1)
        if stop and stop(input_ids):
            break
    return input_ids


@torch.no_grad()
def beam_search(model, input_ids, beams=3, steps=3):
    sequences = input_ids.repeat_interleave(beams, 0)
    scores = torch.zeros(input_ids.size(0), beams).index_fill_(1, torch.arange(1, beams), -1e9).view(-1)
    for _ in range(steps):
        logp = model(sequences)[:, -1].log_softmax(-1)
        total = (logp + scores[:, None]).view(input_ids.size(0), -1)  # raises
        scores, index = total.topk(beams, dim=1)
        source = (index // logp.size(-1) + torch.arange(len(index), device=index.device)[:, None] * beams).view(-1)
        sequences, scores = torch.cat([sequences[source], (index % logp.size(-1)).view(-1, 1)], dim=1), scores.view(-1)
    return sequences.view(input_ids.size(0), beams, -1)[:, 0]
