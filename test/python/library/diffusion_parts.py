"""Parts of diffusion models and vision transformers: schedulers, guidance, embeddings of positions, attention in windows."""
import math
from dataclasses import dataclass
from typing import Callable, Dict, List, Optional, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

SCHEDULES: Dict[str, Callable] = {}


def schedule(name):
    def add(function):
        SCHEDULES[name] = function
        return function

    return add


@schedule("linear")
def linear_betas(steps: int) -> np.ndarray:
    return np.linspace(1e-4, 2e-2, steps, dtype=np.float64)


@schedule("cosine")
def cosine_betas(steps: int, offset: float = 8e-3) -> np.ndarray:
    time = (np.arange(steps + 1) / steps + offset) / (1 + offset)
    bar = np.cos(time * np.pi / 2) ** 2
    return np.clip(1 - bar[1:] / bar[:-1], 0, 0.999)


def expand_to(values: Tensor, like: Tensor) -> Tensor:
    return values.reshape(values.shape + (1,) * (like.dim() - values.dim()))


def extract(table, step: Tensor, like: Tensor) -> Tensor:
    """The entries of a table of numpy or torch at the steps of a batch, to be multiplied with `like`."""
    if isinstance(table, np.ndarray):
        table = torch.from_numpy(table).to(device=step.device)
    return expand_to(table[step].float(), like)  # raises


@dataclass
class SchedulerConfig:
    steps: int = 20
    betas: str = "linear"
    prediction: str = "noise"


class Scheduler:
    """The tables are in double precision."""

    def __init__(self, config: Optional[SchedulerConfig] = None):
        self.config = config or SchedulerConfig()
        self.betas = SCHEDULES[self.config.betas](self.config.steps)
        self.bar = np.cumprod(1 - self.betas)
        self.timesteps = torch.arange(self.config.steps - 1, -1, -1)

    def set_timesteps(self, amount: int, device=None):
        stride = self.config.steps // amount
        self.timesteps = torch.from_numpy(np.arange(0, self.config.steps, stride)[::-1].copy()).to(device)

    def add_noise(self, clean: Tensor, noise: Tensor, step: Tensor) -> Tensor:
        return extract(np.sqrt(self.bar), step, clean) * clean + extract(np.sqrt(1 - self.bar), step, clean) * noise

    def original(self, output: Tensor, step: int, sample: Tensor) -> Tensor:
        bar = self.bar[step]
        if self.config.prediction == "velocity":
            return math.sqrt(bar) * sample - math.sqrt(1 - bar) * output
        return (sample - math.sqrt(1 - bar) * output) / math.sqrt(bar)

    def move(self, clean, output, step, sample, generator):
        raise NotImplementedError

    def step(self, output: Tensor, step, sample: Tensor, generator=None) -> Tensor:
        step = int(step)
        return self.move(self.original(output, step, sample), output, step, sample, generator)


class AncestralScheduler(Scheduler):
    def noise_like(self, sample, generator):
        where = generator.device if generator is not None else sample.device
        return torch.randn(sample.shape, generator=generator, device=where, dtype=sample.dtype).to(sample.device)

    def move(self, clean, output, step, sample, generator):
        previous = self.bar[step - 1] if step > 0 else 1.0
        ahead = math.sqrt(previous) * self.betas[step] / (1 - self.bar[step])
        behind = math.sqrt(1 - self.betas[step]) * (1 - previous) / (1 - self.bar[step])
        mean = ahead * clean + behind * sample
        if step == 0:
            return mean
        variance = torch.tensor((1 - previous) / (1 - self.bar[step]) * self.betas[step])
        return mean + variance.sqrt() * self.noise_like(sample, generator)


class SeededScheduler(AncestralScheduler):
    """The noise of each element of a batch has a seed of its own."""

    seeds = (1, 2)

    def noise_like(self, sample, generator):
        shape = sample.shape[1:]
        return torch.stack([torch.randn(shape, generator=torch.Generator().manual_seed(seed)) for seed in self.seeds])

    def move(self, clean, output, step, sample, generator):
        noise = self.noise_like(sample, generator)
        return clean + self.betas[step] * noise  # raises


class EulerScheduler(Scheduler):
    def __init__(self, config=None):
        super().__init__(config)
        sigmas = np.sqrt((1 - self.bar) / self.bar)[::-1]
        self.sigmas = torch.from_numpy(np.append(sigmas, 0.0).astype(np.float32))

    def move(self, clean, output, step, sample, generator):
        place = len(self.timesteps) - 1 - step
        return sample + output * (self.sigmas[place + 1] - self.sigmas[place])

    def add_noise(self, clean, noise, step):
        place = (self.timesteps.to(step.device)[None] == step[:, None]).nonzero()[:, 1]
        return clean + noise * expand_to(self.sigmas.to(clean.device)[place], clean)


class ContinuousScheduler(EulerScheduler):
    """Steps between the entries of the table, found by interpolation of its logarithm."""

    def step_of(self, sigma: Tensor) -> Tensor:
        logs = self.sigmas[:-1].flip(0).log()
        high = torch.searchsorted(logs, sigma.log()).clamp(1, len(logs) - 1)  # raises
        share = (sigma.log() - logs[high - 1]) / (logs[high] - logs[high - 1])
        return high - 1 + share.clamp(0, 1)


class MultistepScheduler(EulerScheduler):
    """Linear multistep with a kept history of derivatives."""

    coefficients = torch.tensor([1.5, -0.5])

    def __init__(self, config=None):
        super().__init__(config)
        self.history: List[Tensor] = []

    def move(self, clean, output, step, sample, generator):
        self.history = [output] + self.history[:1]
        if len(self.history) == 1:
            return super().move(clean, output, step, sample, generator)
        total = sum(weight * each for weight, each in zip(self.coefficients, self.history))
        return super().move(clean, total, step, sample, generator)

    def combine(self) -> Tensor:
        return torch.tensordot(self.coefficients[: len(self.history)], torch.stack(self.history), dims=1)  # raises


def snr_weights(scheduler: Scheduler, step: Tensor, gamma: float = 5.0) -> Tensor:
    bar = torch.as_tensor(scheduler.bar, dtype=torch.float32)
    snr = bar / (1 - bar)
    return extract(torch.minimum(snr, torch.full_like(snr, gamma)) / snr, step, step)


def diffusion_loss(scheduler: Scheduler, model: Callable, clean: Tensor, step: Tensor, weighted: bool = False) -> Tensor:
    noise = torch.randn_like(clean)
    loss = (model(scheduler.add_noise(clean, noise, step), step) - noise).pow(2).flatten(1).mean(dim=1)
    if weighted:
        loss = loss * snr_weights(scheduler, step)
    return loss.mean()


class Guidance:
    """Runs the model on the batch twice, once without conditions."""

    def __init__(self, model: Callable, scale: float = 3.0, empty: Optional[Tensor] = None):
        self.model, self.scale, self.empty = model, torch.tensor(scale), empty

    def unconditional(self, condition):
        return torch.zeros_like(condition) if self.empty is None else self.empty.expand_as(condition).to(condition)

    def combine(self, without, with_):
        return without + self.scale * (with_ - without)

    def __call__(self, sample, step, condition):
        doubled = torch.cat([self.unconditional(condition), condition])
        steps = torch.as_tensor([int(step)] * (2 * len(sample)), device=sample.device)
        return self.combine(*self.model(torch.cat([sample, sample]), steps, doubled).chunk(2))


class ScheduledGuidance(Guidance):
    """A scale for each step; the batch may be at several steps."""

    def __init__(self, model, steps: int, low=1.0, high=5.0):
        super().__init__(model)
        self.scales = torch.linspace(low, high, steps).unbind()

    def combine_at(self, without, with_, step: Tensor):
        scales = torch.stack([self.scales[number] for number in step.tolist()])
        return without + expand_to(scales, without) * (with_ - without)  # raises


class DynamicThreshold:
    def __init__(self, quantile: float = 0.95, floor: float = 1.0):
        self.quantile, self.floor = torch.tensor([quantile]), floor

    def limit(self, sample):
        return torch.quantile(sample.abs().flatten(1), self.quantile.item(), dim=1).clamp(min=self.floor)

    def __call__(self, sample):
        limit = expand_to(self.limit(sample), sample)
        return torch.minimum(torch.maximum(sample, -limit), limit) / limit


class RobustThreshold(DynamicThreshold):
    def limit(self, sample):
        return torch.quantile(sample.abs().flatten(1), self.quantile, dim=1)[0]  # raises


def soft_inpaint(known: Tensor, generated: Tensor, radius: float) -> Tensor:
    rows, columns = (torch.linspace(-1, 1, size) for size in known.shape[-2:])
    distance = (rows[:, None] ** 2 + columns[None] ** 2).sqrt()
    blend = torch.sigmoid((radius - distance) * 10)
    return torch.lerp(known, generated, blend.expand_as(known))  # raises


def timestep_embedding(step: Tensor, dim: int, period: float = 10000.0) -> Tensor:
    rates = torch.exp(-math.log(period) * torch.arange(dim // 2, dtype=torch.float32) / (dim // 2)).to(step.device)
    angles = step[:, None].float() * rates[None]
    return torch.cat([angles.cos(), angles.sin()], dim=-1)


class FourierFeatures(nn.Module):
    def __init__(self, dim: int, scale: float = 16.0):
        super().__init__()
        self.rates = nn.Parameter(torch.randn(dim // 2), requires_grad=False)
        self.rates.data.mul_(scale)
        self.phase = self.rates.detach() * 0

    def forward(self, step: Tensor) -> Tensor:
        angles = step[:, None].float() * self.rates[None] * 2 * math.pi
        return torch.cat([angles.sin(), angles.cos()], dim=-1)

    def shifted(self, step: Tensor) -> Tensor:
        angles = step.float()[:, None] * self.rates
        return torch.sin(angles + self.phase)  # raises


class TimeMLP(nn.Module):
    def __init__(self, dim: int, embed: Callable[[Tensor], Tensor]):
        super().__init__()
        self.embed = embed
        self.layers = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, step):
        return self.layers(self.embed(step))


class TableEmbedding:
    """A precomputed table of embeddings."""

    def __init__(self, steps: int, dim: int):
        self.table = nn.Embedding.from_pretrained(timestep_embedding(torch.arange(steps), dim))

    def __call__(self, step: Tensor) -> Tensor:
        return self.table(step)  # raises


class PatchEmbed(nn.Module):
    def __init__(self, patch: int = 4, channels: int = 3, dim: int = 16):
        super().__init__()
        self.patch = patch
        self.project = nn.Conv2d(channels, dim, patch, patch)

    def forward(self, images):
        return self.project(images).permute(0, 2, 3, 1)


class SinePosition(nn.Module):
    """Fixed embeddings in two dimensions, kept for each shape."""

    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim
        self._kept: Dict[Tuple[int, int], Tensor] = {}

    def build(self, height, width):
        rows = timestep_embedding(torch.arange(height), self.dim // 2)
        columns = timestep_embedding(torch.arange(width), self.dim // 2)
        return torch.cat([rows[:, None].expand(-1, width, -1), columns[None].expand(height, -1, -1)], dim=-1)

    def table(self, height, width):
        if (height, width) not in self._kept:
            self._kept[height, width] = self.build(height, width)
        return self._kept[height, width]

    def forward(self, tokens):
        return tokens + self.table(*tokens.shape[1:3])  # raises


def window_partition(tokens: Tensor, size: int) -> Tensor:
    batch, height, width, dim = tokens.shape
    tokens = tokens.view(batch, height // size, size, width // size, size, dim)
    return tokens.permute(0, 1, 3, 2, 4, 5).reshape(-1, size * size, dim)


def window_reverse(windows: Tensor, size: int, height: int, width: int) -> Tensor:
    tokens = windows.view(-1, height // size, width // size, size, size, windows.shape[-1])
    return tokens.permute(0, 1, 3, 2, 4, 5).reshape(-1, height, width, windows.shape[-1])


class RelativeBias(nn.Module):
    def __init__(self, size: int, heads: int):
        super().__init__()
        self.table = nn.Parameter(torch.zeros((2 * size - 1) ** 2, heads))
        place = torch.stack(torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")).flatten(1)
        distance = place[:, :, None] - place[:, None] + size - 1
        self.index = distance[0] * (2 * size - 1) + distance[1]

    def forward(self) -> Tensor:
        return self.table[self.index.flatten()].view(*self.index.shape, -1).permute(2, 0, 1)


class ContinuousBias(RelativeBias):
    """The bias is what a small network gives for the logarithm of the distance."""

    def __init__(self, size, heads):
        super().__init__(size, heads)
        steps = torch.linspace(-1, 1, 2 * size - 1)
        coords = torch.stack(torch.meshgrid(steps, steps, indexing="ij"), dim=-1).view(-1, 2)
        self.coords = torch.sign(coords) * torch.log2(1 + coords.abs() * 8) / 3
        self.network = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, heads, bias=False))

    def forward(self):
        values = self.network(self.coords)  # raises
        return values[self.index.flatten()].view(*self.index.shape, -1).permute(2, 0, 1)


class WindowAttention(nn.Module):
    def __init__(self, dim: int = 16, size: int = 2, heads: int = 2, shift: int = 0, bias=RelativeBias):
        super().__init__()
        self.size, self.heads, self.shift = size, heads, shift
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.bias = bias(size, heads)

    def shift_mask(self, height, width) -> Tensor:
        regions = torch.zeros(1, height, width, 1)
        cuts = (slice(0, -self.size), slice(-self.size, -self.shift), slice(-self.shift, None))
        for number, (rows, columns) in enumerate((rows, columns) for rows in cuts for columns in cuts):
            regions[:, rows, columns] = number
        ids = window_partition(regions, self.size).squeeze(-1)
        return (ids[:, None] != ids[:, :, None]).float() * -100.0

    def scores(self, query, key, height, width):
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]) + self.bias()
        if not self.shift:
            return scores
        mask = self.shift_mask(height, width)
        grouped = scores.view(-1, len(mask), *scores.shape[1:])
        return (grouped + mask[:, None]).view_as(scores)  # raises

    def forward(self, tokens):
        _, height, width, dim = tokens.shape
        rolled = torch.roll(tokens, (-self.shift, -self.shift), dims=(1, 2))
        windows = window_partition(rolled, self.size)
        query, key, value = self.qkv(windows).view(*windows.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = self.scores(query, key, height, width).softmax(dim=-1) @ value
        tokens = window_reverse(self.out(mixed.transpose(1, 2).flatten(2)), self.size, height, width)
        return torch.roll(tokens, (self.shift, self.shift), dims=(1, 2))


class StaticShiftAttention(WindowAttention):
    def __init__(self, resolution: int, **options):
        super().__init__(**options)
        self.register_buffer("mask", super().shift_mask(resolution, resolution))

    def shift_mask(self, height, width):
        return self.mask


class RandomMasking(nn.Module):
    """Keeps a share of the patches, as masked autoencoders do."""

    def __init__(self, share: float, dim: int, structured: bool = False):
        super().__init__()
        self.share, self.structured = share, structured
        self.token = nn.Parameter(torch.zeros(1, 1, dim))

    def order(self, batch, length, device):
        noise = torch.rand(batch, length)
        return noise.argsort(dim=1) if self.structured else noise.argsort(dim=1).to(device)

    def forward(self, tokens):
        batch, length, dim = tokens.shape
        order = self.order(batch, length, tokens.device)
        kept = order[:, : int(length * self.share)]
        chosen = torch.gather(tokens, 1, kept[..., None].expand(-1, -1, dim))  # raises
        return chosen, order.argsort(dim=1)

    def restore(self, chosen, back):
        filled = torch.cat([chosen, self.token.expand(len(chosen), back.shape[1] - chosen.shape[1], -1)], dim=1)
        return filled[torch.arange(len(chosen))[:, None], back]
