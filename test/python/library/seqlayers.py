from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


def make_positions(tokens, padding_idx):
    mask = tokens.ne(padding_idx).int()
    return (torch.cumsum(mask, dim=1).type_as(mask) * mask).long() + padding_idx


class SinusoidalPositionalEmbedding(nn.Module):
    def __init__(self, dim, padding_idx, init_size=8):
        super().__init__()
        self.dim, self.padding_idx = dim, padding_idx
        self.weights = self.get_embedding(init_size, dim, padding_idx)
        self.register_buffer("_float_tensor", torch.FloatTensor(1))

    @staticmethod
    def get_embedding(n, dim, padding_idx):
        half = dim // 2
        emb = torch.exp(torch.arange(half, dtype=torch.float) * -(9.21 / max(half - 1, 1)))
        emb = torch.arange(n, dtype=torch.float).unsqueeze(1) * emb.unsqueeze(0)
        emb = torch.cat([torch.sin(emb), torch.cos(emb)], dim=1).view(n, -1)
        emb[padding_idx, :] = 0
        return emb

    def forward(self, input):
        bsz, seq_len = input.shape
        max_pos = self.padding_idx + 1 + seq_len
        if self.weights is None or max_pos > self.weights.size(0):
            self.weights = self.get_embedding(max_pos, self.dim, self.padding_idx)
        self.weights = self.weights.to(self._float_tensor)
        positions = make_positions(input, self.padding_idx)
        return self.weights.index_select(0, positions.view(-1)).view(bsz, seq_len, -1).detach()


class LearnedPositions(nn.Embedding):
    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        positions = torch.arange(offset, offset + x.size(1))
        return super().forward(positions)  # raises


class DecoderState(NamedTuple):
    key: Tensor
    value: Tensor


class IncrementalAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.kv = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim)
        self._future_mask = torch.empty(0)

    def buffered_future_mask(self, t: Tensor) -> Tensor:
        n = t.size(1)
        if self._future_mask.size(0) < n:
            self._future_mask = torch.triu(torch.full([n, n], float("-inf")), 1)
        return self._future_mask[:n, :n]

    def forward(self, x: Tensor, state: Optional[DecoderState] = None) -> Tuple[Tensor, DecoderState]:
        q, (k, v) = self.q(x), self.kv(x).chunk(2, -1)
        if state is not None:
            k, v = torch.cat([state.key, k], 1), torch.cat([state.value, v], 1)
        w = q @ k.transpose(1, 2)
        if state is None:
            w = w + self.buffered_future_mask(x)  # raises
        return F.softmax(w, -1) @ v, DecoderState(k, v)


class MaskedAttention(IncrementalAttention):
    def buffered_future_mask(self, t):
        n = t.size(1)
        if self._future_mask.size(0) == 0 or not self._future_mask.device == t.device or self._future_mask.size(0) < n:
            self._future_mask = torch.triu(t.new_full([n, n], float("-inf")), 1)
        return self._future_mask[:n, :n]


class ALiBi(nn.Module):
    def __init__(self, heads):
        super().__init__()
        slopes = torch.tensor([2 ** (-8 * (i + 1) / heads) for i in range(heads)])
        self.register_buffer("slopes", slopes.view(heads, 1, 1), persistent=False)

    def forward(self, scores):
        q, k = scores.shape[-2:]
        rel = torch.arange(k).view(1, 1, k) - torch.arange(q).view(1, q, 1)
        return scores + self.slopes * rel  # raises


class LocalMask(nn.Module):
    def __init__(self, window):
        super().__init__()
        self.window = window

    def forward(self, scores: Tensor) -> Tensor:
        n = scores.size(-1)
        i = torch.arange(n, device=scores.device)
        far = (i[None] - i[:, None]).abs() > self.window
        return scores.masked_fill(far, float("-inf"))


class SpecAugment(nn.Module):
    def __init__(self, width=2, count=2):
        super().__init__()
        self.width, self.count = width, count

    def forward(self, x):
        b, t, f = x.shape
        start = torch.randint(0, t - self.width, (b, self.count, 1))
        pos = torch.arange(t).view(1, 1, -1)
        mask = ((pos >= start) & (pos < start + self.width)).any(1)
        return x.masked_fill(mask.unsqueeze(-1), 0.0)  # raises


class TimeDropout(nn.Module):
    def __init__(self, p=0.3):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training:
            return x
        keep = torch.rand(x.shape[1]) > self.p
        out = x.clone()
        out[:, ~keep] = 0
        return out


class LockedDropout(nn.Module):
    def forward(self, x, p=0.5):
        if not self.training or not p:
            return x
        m = x.data.new(1, x.size(1), x.size(2)).bernoulli_(1 - p)
        return m.div_(1 - p).expand_as(x) * x


class CRF(nn.Module):
    def __init__(self, num_tags):
        super().__init__()
        self.num_tags = num_tags
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags).uniform_(-0.1, 0.1))
        self.start = nn.Parameter(torch.zeros(num_tags))

    def forward_alg(self, feats):
        alpha = self.start + feats[0]
        for feat in feats[1:]:
            alpha = torch.logsumexp(alpha[:, None] + self.transitions + feat[None], 0)
        return torch.logsumexp(alpha, 0)

    def gold(self, feats, tags):
        score = torch.zeros(1)
        for i, feat in enumerate(feats):
            score = score + feat[tags[i]]  # raises
        return score

    def forward(self, feats, tags):
        return self.forward_alg(feats) - self.gold(feats, tags)

    def viterbi(self, feats) -> List[int]:
        score = torch.full((1, self.num_tags), -1e4)
        score[0][0] = 0.0
        back: List[Tensor] = []
        for feat in feats:
            best, idx = (score.t() + self.transitions).max(0)  # raises
            back.append(idx)
            score = (best + feat)[None]
        tag = int(score.argmax())
        path = [tag]
        for idx in reversed(back):
            tag = int(idx[tag])
            path.append(tag)
        return path[::-1]


def collate_tokens(values: List[Tensor], pad_idx: int, left_pad=False) -> Tensor:
    size = max(v.size(0) for v in values)
    res = values[0].new(len(values), size).fill_(pad_idx)
    for i, v in enumerate(values):
        dst = res[i][size - len(v):] if left_pad else res[i][: len(v)]
        dst.copy_(v)
    return res


def lengths_to_padding_mask(lens: Tensor) -> Tensor:
    bsz, max_lens = lens.size(0), int(torch.max(lens).item())
    mask = torch.arange(max_lens).to(lens.device).view(1, max_lens)
    return mask.expand(bsz, -1) >= lens.view(bsz, 1).expand(-1, max_lens)


def length_regulate(x: Tensor, durations: Tensor) -> Tensor:
    outs = [torch.repeat_interleave(xi, d, dim=0) for xi, d in zip(x, durations)]
    longest = max(o.size(0) for o in outs)
    return torch.stack([torch.cat([o, torch.zeros(longest - o.size(0), o.size(1))]) for o in outs])  # raises


def ngram_block(tokens: Tensor, lprobs: Tensor, n: int = 2) -> Tensor:
    seen: Dict[Tuple[int, ...], List[int]] = {}
    toks = tokens.tolist()
    for gram in zip(*[toks[i:] for i in range(n)]):
        seen.setdefault(tuple(gram[:-1]), []).append(gram[-1])
    banned = seen.get(tuple(toks[-(n - 1):]), [])
    lprobs[torch.tensor(banned, dtype=torch.long)] = -float("inf")
    return lprobs


def shift_right(labels: Tensor, bos: int) -> Tensor:
    return torch.cat([torch.full((labels.size(0), 1), bos), labels[:, :-1]], 1)  # raises
