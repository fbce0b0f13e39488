"""Datasets, collation, samplers and noise schedules."""
import math
import random
from collections import deque
from typing import Any, Dict, Iterator, List, Optional, Sequence, Union

import torch
import torch.nn.functional as F
from torch.utils.data import Dataset, Sampler


class TokenDataset(Dataset):
    def __init__(self, tokens: List[int], block: int = 4):
        self.tokens, self.block = tokens, block

    def __len__(self):
        return len(self.tokens) - self.block

    def __getitem__(self, i):
        chunk = self.tokens[i : i + self.block + 1]
        return {"input_ids": torch.tensor(chunk[:-1]), "labels": torch.tensor(chunk[1:])}


class PadCollator:
    def __init__(self, pad_id: int = 0, label_pad: int = -100):
        self.pad_id, self.label_pad = pad_id, label_pad

    def __call__(self, batch: List[Dict[str, torch.Tensor]]) -> Dict[str, torch.Tensor]:
        n = max(len(b["input_ids"]) for b in batch)
        ids = torch.full((len(batch), n), self.pad_id, dtype=torch.long)
        labels = torch.full((len(batch), n), self.label_pad, dtype=torch.long)
        for i, b in enumerate(batch):
            ids[i, : len(b["input_ids"])] = b["input_ids"]
            labels[i, : len(b["labels"])] = b["labels"]
        return {"input_ids": ids, "labels": labels, "attention_mask": ids.ne(self.pad_id).long()}


class LengthGroupedSampler(Sampler):
    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int = 0):
        self.lengths, self.batch_size = list(lengths), batch_size
        self.generator = torch.Generator()
        self.generator.manual_seed(seed)

    def __len__(self):
        return len(self.lengths)

    def __iter__(self) -> Iterator[int]:
        idx = torch.randperm(len(self.lengths), generator=self.generator)
        mega = [idx[i : i + 4 * self.batch_size].tolist() for i in range(0, len(idx), 4 * self.batch_size)]
        mega = [sorted(m, key=lambda i: self.lengths[i], reverse=True) for m in mega]
        return iter([i for m in mega for i in m])


def move_to(obj: Any, device) -> Any:
    if torch.is_tensor(obj):
        return obj.to(device, non_blocking=True)
    if isinstance(obj, dict):
        return {k: move_to(v, device) for k, v in obj.items()}
    if isinstance(obj, (list, tuple)):
        return type(obj)(move_to(v, device) for v in obj)
    return obj


def pad_to_length(t: torch.Tensor, length: int, value: Union[int, float], dim: int = -1) -> torch.Tensor:
    if t.size(dim) >= length:
        return t
    size = list(t.shape)
    size[dim] = length - t.size(dim)
    return torch.cat([t, value * torch.ones(*size, dtype=t.dtype, device=t.device)], dim=dim)


def left_pad(t: torch.Tensor, length: int, value: int) -> torch.Tensor:
    if t.size(-1) >= length:
        return t
    pad = torch.full((t.size(0), length - t.size(-1)), value, dtype=t.dtype)
    return torch.cat([pad, t], dim=-1)  # raises


def shift_tokens_right(ids: torch.Tensor, pad: int, start: int) -> torch.Tensor:
    out = ids.new_zeros(ids.shape)
    out[:, 1:] = ids[:, :-1].clone()
    out[:, 0] = start
    return out.masked_fill_(out == -100, pad)


def mask_tokens(ids: torch.Tensor, vocab: int, mask_id: int, p: float = 0.15, special=(0, 1)):
    labels = ids.clone()
    probability = torch.full(labels.shape, p)
    special_mask = torch.tensor([[t in special for t in row] for row in labels.tolist()], dtype=torch.bool)
    probability.masked_fill_(special_mask, value=0.0)
    masked = torch.bernoulli(probability).bool()
    labels[~masked] = -100
    replaced = torch.bernoulli(torch.full(labels.shape, 0.8)).bool() & masked
    ids = ids.masked_fill(replaced.to(ids.device), mask_id)
    return ids, labels


def corrupt_tokens(ids: torch.Tensor, vocab: int, p: float = 0.1) -> torch.Tensor:
    noise = torch.rand(ids.shape) < p
    random_words = torch.randint(vocab, ids.shape, dtype=torch.long)
    return torch.where(noise, random_words, ids)  # raises


def random_spans(x: torch.Tensor, width: int = 2) -> torch.Tensor:
    t = x.size(1)
    start = torch.randint(0, max(1, t - width), (x.size(0), 1))
    steps = torch.arange(t)[None]
    mask = (steps >= start) & (steps < start + width)
    x = x.clone()
    x[mask] = 0
    return x


def spec_augment(x: torch.Tensor, width: int = 2) -> torch.Tensor:
    b, t, f = x.shape
    start = torch.randint(0, max(1, t - width), (b, 1))
    steps = torch.arange(t)[None]
    keep = ~((steps >= start) & (steps < start + width))
    return x * keep.unsqueeze(-1)  # raises


def mixup(x: torch.Tensor, y: torch.Tensor, n: int, alpha: float = 0.2):
    lam = torch.distributions.Beta(alpha, alpha).sample()
    perm = torch.randperm(x.size(0))
    y = F.one_hot(y, n).to(x.dtype)
    return lam * x + (1 - lam) * x[perm], lam * y + (1 - lam) * y[perm]


def mixup_vector(x: torch.Tensor, y: torch.Tensor, n: int, alpha: float = 0.2):
    gamma = torch.distributions.Gamma(torch.tensor([alpha] * 2), torch.ones(2)).sample((x.size(0),))
    lam = (gamma / gamma.sum(-1, keepdim=True))[:, :1]
    perm = torch.randperm(x.size(0), device=x.device)
    y = F.one_hot(y, n).to(x.dtype)
    y = lam.to(y) * y + (1 - lam.to(y)) * y[perm]
    return lam * x + (1 - lam) * x[perm], y  # raises


class PrioritizedReplay:
    """Priorities live on the CPU, experience on the device of what is pushed."""

    def __init__(self, capacity: int = 16, alpha: float = 0.6):
        self.buffer: deque = deque(maxlen=capacity)
        self.priorities = torch.ones(capacity)
        self.alpha = alpha

    def push(self, *items: torch.Tensor):
        self.buffer.append(items)

    def sample(self, n: int):
        p = self.priorities[: len(self.buffer)] ** self.alpha
        idx = torch.multinomial(p / p.sum(), n, replacement=True)
        batch = [torch.stack(t) for t in zip(*[self.buffer[i] for i in idx.tolist()])]
        return batch, idx

    def weights(self, idx: torch.Tensor, td_error: torch.Tensor, beta: float = 0.4):
        p = self.priorities[idx]
        w = (len(self.buffer) * p / p.sum()) ** -beta
        return (w / w.max() * td_error).mean()  # raises

    def update(self, idx: torch.Tensor, td_error: torch.Tensor):
        self.priorities[idx] = td_error.detach().abs().cpu() + 1e-5


def cosine_betas(n: int, s: float = 0.008) -> torch.Tensor:
    x = torch.linspace(0, n, n + 1)
    ac = torch.cos(((x / n) + s) / (1 + s) * math.pi * 0.5) ** 2
    return torch.clip(1 - ac[1:] / ac[:-1], 0.0001, 0.9999)


class NoiseSchedule:
    def __init__(self, n: int = 10):
        self.betas = cosine_betas(n)
        self.alphas_cumprod = torch.cumprod(1 - self.betas, 0)

    def add_noise(self, x0: torch.Tensor, noise: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        ac = self.alphas_cumprod.to(device=x0.device, dtype=x0.dtype)
        t = t.to(x0.device)
        a = ac[t].view(-1, *[1] * (x0.dim() - 1))
        return a.sqrt() * x0 + (1 - a).sqrt() * noise

    def get_velocity(self, x0: torch.Tensor, noise: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        a = self.alphas_cumprod[t.cpu()].view(-1, *[1] * (x0.dim() - 1))
        return a.sqrt() * noise - (1 - a).sqrt() * x0  # raises

    def snr_weights(self, t: torch.Tensor, loss: torch.Tensor, gamma: float = 5.0) -> torch.Tensor:
        all_snr = self.alphas_cumprod / (1 - self.alphas_cumprod)
        snr = torch.stack([all_snr[i] for i in t])
        weight = torch.minimum(snr, torch.full_like(snr, gamma)) / snr
        return loss * weight  # raises

    def step(self, eps: torch.Tensor, t: int, x: torch.Tensor, generator: Optional[torch.Generator] = None):
        a, b = self.alphas_cumprod[t], self.betas[t]
        mean = (x - b / (1 - a).sqrt() * eps) / (1 - b).sqrt()
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype).to(x.device)
        return mean + (b.sqrt() * noise if t > 0 else 0)


def antithetic_timesteps(x: torch.Tensor, n: int) -> torch.Tensor:
    t = torch.randint(0, n, size=(x.size(0) // 2 + 1,))
    return torch.cat([t, n - t - 1], dim=0)[: x.size(0)].to(x.device)


def stratified_z(near: torch.Tensor, far: torch.Tensor, samples: int, perturb: bool = True) -> torch.Tensor:
    t = torch.linspace(0.0, 1.0, samples, device=near.device)
    z = near[:, None] * (1 - t) + far[:, None] * t
    if perturb:
        mids = 0.5 * (z[..., 1:] + z[..., :-1])
        upper, lower = torch.cat([mids, z[..., -1:]], -1), torch.cat([z[..., :1], mids], -1)
        z = lower + (upper - lower) * torch.rand(z.shape)  # raises
    return z


def sample_pdf(bins: torch.Tensor, weights: torch.Tensor, n: int, det: bool = False) -> torch.Tensor:
    pdf = (weights + 1e-5) / (weights + 1e-5).sum(-1, keepdim=True)
    cdf = torch.cumsum(pdf, -1)
    cdf = torch.cat([torch.zeros_like(cdf[..., :1]), cdf], -1)
    if det:
        u = torch.linspace(0.0, 1.0, steps=n).expand(list(cdf.shape[:-1]) + [n])
    else:
        u = torch.rand(list(cdf.shape[:-1]) + [n])
    u = u.contiguous().to(cdf.device)
    inds = torch.searchsorted(cdf, u, right=True)
    below, above = (inds - 1).clamp(min=0), inds.clamp(max=cdf.size(-1) - 1)
    lo, hi = torch.gather(bins, -1, below), torch.gather(bins, -1, above)
    return 0.5 * (lo + hi)


def farthest_points(xyz: torch.Tensor, n: int) -> torch.Tensor:
    b, total, _ = xyz.shape
    centroids = torch.zeros(b, n, dtype=torch.long)
    distance = torch.full((b, total), 1e10)
    farthest = torch.randint(0, total, (b,))
    rows = torch.arange(b)
    for i in range(n):
        centroids[:, i] = farthest
        dist = ((xyz - xyz[rows, farthest].view(b, 1, 3)) ** 2).sum(-1)
        distance = torch.minimum(distance, dist)  # raises
        farthest = distance.max(-1).indices
    return centroids
