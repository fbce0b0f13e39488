"""Decoding, noise schedules and quasi-random helpers for callers who own the device."""
import inspect
import math
from typing import Callable, List, Optional, Tuple, Union

import numpy as np
import torch
from torch import nn


# clean
def top_k_top_p(logits: torch.Tensor, top_k: int = 0, top_p: float = 1.0, keep_at_least: int = 1) -> torch.Tensor:
    if top_k > 0:
        k = min(max(top_k, keep_at_least), logits.size(-1))
        logits = logits.masked_fill(logits < logits.topk(k)[0][..., -1, None], -float("inf"))
    if 0 <= top_p < 1.0:
        srt, idx = logits.sort(descending=True)
        remove = srt.softmax(-1).cumsum(-1) > top_p
        remove[..., :keep_at_least] = torch.zeros(keep_at_least, dtype=torch.bool)
        remove[..., 1:] = remove[..., :-1].clone()
        logits = logits.masked_fill(remove.scatter(1, idx, remove), -float("inf"))
    return logits


# broken
class RepetitionPenalty:
    def __init__(self, penalty: float, bad_words: Optional[List[int]] = None):
        self.penalty = penalty
        self.bad_words = bad_words or []
        self._static: Optional[torch.Tensor] = None

    def _mask(self, scores: torch.Tensor) -> torch.Tensor:
        if self._static is None or self._static.size(-1) != scores.size(-1):
            m = torch.zeros(scores.size(-1))
            m[self.bad_words] = float("-inf")
            self._static = m
        return self._static

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        s = scores.gather(1, ids)
        s = torch.where(s < 0, s * self.penalty, s / self.penalty)
        scores = scores.scatter(1, ids, s)
        if self.bad_words:
            scores = scores + self._mask(scores)  # raises
        return scores


# broken
class VPSchedule(nn.Module):
    def __init__(self, beta_min: float = .1, beta_max: float = 20., n: int = 10):
        super().__init__()
        self.b0, self.b1, self.n = beta_min, beta_max, n
        betas = torch.linspace(beta_min / n, beta_max / n, n)
        self.register_buffer("betas", betas)
        self.register_buffer("sqrt_1m_alphas_cumprod", (1 - (1 - betas).cumprod(0)).sqrt())
        self.sqrt_alphas_cumprod = (1 - betas).cumprod(0).sqrt()

    def marginal(self, x0: torch.Tensor, t: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        shape = (-1,) + (1,) * (x0.ndim - 1)
        std = self.sqrt_1m_alphas_cumprod[t].view(shape)
        mean = self.sqrt_alphas_cumprod[t].view(shape) * x0  # raises
        return mean, std

    def forward(self, x0, t, noise=None):
        noise = torch.randn_like(x0) if noise is None else noise
        mean, std = self.marginal(x0, t)
        return mean + std * noise


# clean
def edm_sampler(net: Union[nn.Module, Callable], latents: torch.Tensor, num_steps: int = 4, sigma_min=.002, sigma_max=80., rho=7.,
                randn: Optional[Callable] = None) -> torch.Tensor:
    randn = torch.randn_like if randn is None else randn
    idx = torch.arange(num_steps, dtype=torch.float64)
    t_steps = (sigma_max ** (1 / rho) + idx / (num_steps - 1) * (sigma_min ** (1 / rho) - sigma_max ** (1 / rho))) ** rho
    t_steps = torch.cat([t_steps, torch.zeros(1, dtype=t_steps.dtype)])
    takes_sigma = isinstance(net, nn.Module) or len(inspect.signature(net).parameters) > 1
    x = latents.to(torch.float64) * t_steps[0]
    for t_cur, t_next in zip(t_steps[:-1], t_steps[1:]):
        x_hat = x + .01 * t_cur * randn(x)
        den = net(x_hat, t_cur) if takes_sigma else net(x_hat)
        x = x_hat + (t_next - t_cur) * (x_hat - den) / t_cur
    return x


# clean
class ReplayReservoir:
    """keeps samples on `storage`, hands them out on the device of the last sample seen"""

    def __init__(self, size: int, storage: Union[str, torch.device] = "cpu", seed: int = 0):
        self.size, self.storage, self.seen = size, torch.device(storage), 0
        self.rng = np.random.default_rng(seed)
        self.mem: Optional[torch.Tensor] = None
        self.out_device = self.storage

    def add(self, x: torch.Tensor) -> None:
        if self.mem is None:
            self.mem = torch.zeros(self.size, *x.shape[1:], dtype=x.dtype, device=self.storage)
        self.out_device = x.device
        for row in x:
            j = self.seen if self.seen < self.size else int(self.rng.integers(self.seen + 1))
            if j < self.size:
                self.mem[j] = row
            self.seen += 1

    def sample(self, n: int) -> torch.Tensor:
        idx = torch.from_numpy(self.rng.permutation(min(self.seen, self.size))[:n].copy())
        return self.mem[idx].to(self.out_device, non_blocking=True)


# broken
def gumbel_subset(logits: torch.Tensor, k: int, tau: float = 1., hard: bool = True) -> torch.Tensor:
    eps = np.finfo(np.float32).tiny
    g = -torch.log(-torch.log(torch.rand_like(logits).clamp_min(eps)).clamp_min(eps))
    s = logits + g
    khot = torch.zeros_like(s)
    onehot = torch.zeros_like(s)
    floor = torch.tensor([eps])
    for _ in range(k):
        mask = torch.max(1. - onehot, floor)  # raises
        s = s + mask.log()
        onehot = torch.softmax(s / tau, -1)
        khot = khot + onehot
    if hard:
        top = torch.topk(khot, k, dim=-1).indices
        khot = torch.zeros_like(khot).scatter(-1, top, 1.) - khot.detach() + khot
    return khot
