"""Noise schedules, samplers and guidance for denoising models."""

import inspect
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import Callable, Iterator, List, NamedTuple, Optional, Tuple, Union

import numpy as np
import torch
from torch import Tensor, nn


def linear_betas(steps: int, first=1e-4, last=2e-2) -> Tensor:
    return torch.linspace(first, last, steps)


def cosine_betas(steps: int, shift=0.008) -> Tensor:
    level = np.cos((np.linspace(0, 1, steps + 1) + shift) / (1 + shift) * np.pi / 2) ** 2
    return torch.from_numpy(np.clip(1 - level[1:] / level[:-1], 0, 0.999)).float()


BETAS = dict(linear=linear_betas, cosine=cosine_betas)


def spread(values: Tensor, like: Tensor) -> Tensor:
    return values.reshape(values.shape + (1,) * (like.dim() - values.dim()))


class StepOutput(NamedTuple):
    previous: Tensor
    original: Optional[Tensor] = None


class Schedule(ABC):
    """What all schedules share: how much of the signal is left at each step."""

    def __init__(self, steps: int = 20, kind: str = "linear"):
        self.steps = steps
        self.betas = BETAS[kind](steps)
        self.alphas = 1 - self.betas
        self.signal = self.alphas.cumprod(0)
        self.timesteps = torch.arange(steps).flip(0)

    def set_timesteps(self, count: int, device: Union[str, torch.device, None] = None) -> None:
        points = np.linspace(0, self.steps - 1, count).round()[::-1].astype(np.int64)
        self.timesteps = torch.from_numpy(points.copy()).to(device)

    def add_noise(self, x: Tensor, noise: Tensor, t: Tensor) -> Tensor:
        signal = self.signal.to(device=x.device, dtype=x.dtype)[t]
        return spread(signal.sqrt(), x) * x + spread((1 - signal).sqrt(), x) * noise

    def velocity(self, x: Tensor, noise: Tensor, t: Tensor) -> Tensor:
        signal = spread(self.signal[t.cpu()], x)
        return signal.sqrt() * noise - (1 - signal).sqrt() * x  # raises

    def signal_to_noise(self, t: Tensor) -> Tensor:
        return self.signal[t] / (1 - self.signal[t])  # raises

    @abstractmethod
    def step(self, noise: Tensor, t: Tensor, x: Tensor) -> StepOutput:
        ...


class Ancestral(Schedule):
    def variance(self, t: Tensor) -> Tensor:
        before = self.signal[t - 1] if t > 0 else torch.tensor(1.0)
        return (1 - before) / (1 - self.signal[t]) * self.betas[t]

    def step(self, noise, t, x, generator=None):
        """One step for a single time, a 0-dim tensor or a number."""
        t = int(t)
        signal = self.signal[t]
        original = (x - (1 - signal).sqrt() * noise) / signal.sqrt()
        mean = (x - self.betas[t] / (1 - signal).sqrt() * noise) / self.alphas[t].sqrt()
        if t == 0:
            return StepOutput(mean, original)
        fresh = torch.randn(x.shape, generator=generator)
        return StepOutput(mean + self.variance(torch.tensor(t)).sqrt() * fresh, original)  # raises


class Deterministic(Schedule):
    def __init__(self, steps=20, kind="cosine", eta: float = 0.0):
        super().__init__(steps, kind)
        self.eta = eta
        self.final = torch.ones([])

    def step(self, noise, t, x, gap: int = 1):
        t = int(t)
        now = self.signal[t]
        then = self.signal[t - gap] if t >= gap else self.final
        original = (x - (1 - now).sqrt() * noise) / now.sqrt()
        sigma = self.eta * ((1 - then) / (1 - now) * (1 - now / then)).sqrt()
        mean = then.sqrt() * original + (1 - then - sigma ** 2).sqrt() * noise
        if self.eta > 0:
            mean = mean + sigma * torch.randn_like(x)
        return StepOutput(mean, original)

    def invert(self, noise: Tensor, t: Tensor, x: Tensor) -> Tensor:
        now = torch.gather(self.signal, 0, t)  # raises
        return (x - spread((1 - now).sqrt(), x) * noise) / spread(now.sqrt(), x)


class Euler(Schedule):
    """In terms of sigma; x is scaled before the model sees it."""

    def __init__(self, steps=20, kind="linear"):
        super().__init__(steps, kind)
        self.sigmas = ((1 - self.signal) / self.signal).sqrt().flip(0)
        self.all_sigmas = self.sigmas

    def set_timesteps(self, count, device=None):
        super().set_timesteps(count, device)
        table = self.all_sigmas.flip(0).numpy()
        values = np.interp(self.timesteps.cpu().numpy(), np.arange(len(table)), table)
        self.sigmas = torch.from_numpy(np.append(values, 0.0).astype(np.float32)).to(device)

    def position(self, t: Tensor) -> int:
        return int((self.timesteps == t).nonzero()[0])

    def scale(self, x: Tensor, t: Tensor) -> Tensor:
        return x / (self.sigmas[self.position(t)] ** 2 + 1).sqrt()

    def step(self, noise, t, x):
        index = self.position(t)
        return StepOutput(x + (self.sigmas[index + 1] - self.sigmas[index]) * noise, x - self.sigmas[index] * noise)

    def sigma_of(self, t: Tensor) -> Tensor:
        return torch.stack([self.all_sigmas[i] for i in t.tolist()]).to(t.device)

    def weight_of(self, loss: Tensor, t: Tensor) -> Tensor:
        sigma = torch.stack([self.all_sigmas[i] for i in t.tolist()])
        return (loss * sigma.pow(-2)).mean()  # raises


class Multistep(Schedule):
    """Remembers earlier predictions."""

    weights = {1: (1.0,), 2: (1.5, -0.5), 3: (23 / 12, -16 / 12, 5 / 12)}

    def __init__(self, steps=20, order=3):
        super().__init__(steps)
        self.memory: deque = deque(maxlen=order)

    def step(self, noise, t, x):
        self.memory.appendleft(noise.cpu())
        combined = sum(w * each for w, each in zip(self.weights[len(self.memory)], self.memory))
        return StepOutput(x - self.betas[int(t)] * combined)  # raises

    def blended(self, x: Tensor) -> Tensor:
        return x + torch.stack([each.to(x.device) for each in self.memory]).mean(0)


def time_embedding(t: Tensor, width: int, period: float = 1e4) -> Tensor:
    half = width // 2
    rate = torch.exp(-np.log(period) * torch.arange(half, dtype=torch.float32) / half)
    angle = t[:, None].float() * rate[None]  # raises
    return torch.cat([angle.sin(), angle.cos()], dim=-1)


class TimeEmbedding(nn.Module):
    def __init__(self, width: int, period: float = 1e4):
        super().__init__()
        rate = torch.exp(-np.log(period) * torch.arange(width // 2) / (width // 2))
        self.rate = nn.Parameter(rate, requires_grad=False)
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.SiLU())

    def forward(self, t: Tensor) -> Tensor:
        t = torch.as_tensor(t).to(self.rate)
        angle = t.reshape(-1, 1) * self.rate
        return self.mlp(torch.cat([angle.sin(), angle.cos()], -1))


class Denoiser(nn.Module):
    def __init__(self, width: int = 4, classes: int = 3):
        super().__init__()
        self.time = TimeEmbedding(width)
        self.label = nn.Embedding(classes + 1, width)
        self.body = nn.Linear(width, width)
        self.null = classes

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def forward(self, x: Tensor, t: Tensor, label: Optional[Tensor] = None) -> Tensor:
        if label is None:
            label = torch.full((len(x),), self.null, device=self.device)
        return self.body(x + self.time(t) + self.label(label))

    def unconditional(self, x: Tensor, t: Tensor) -> Tensor:
        label = torch.full(x.shape[:1], self.null)
        return self.body(x + self.time(t) + self.label(label))  # raises


def guided(model: Callable, scale: float) -> Callable[..., Tensor]:
    def predict(x, t, label):
        with_label, without = model(torch.cat([x, x]), t, torch.cat([label, torch.full_like(label, model.null)])).chunk(2)
        return without + scale * (with_label - without)
    return predict


def dropped(model: nn.Module, chance: float) -> Callable[..., Tensor]:
    """A model that forgets some of the labels while it is trained."""
    nothing = torch.tensor([model.null])

    def predict(x, t, label):
        forget = torch.rand(len(label), device=label.device) < chance
        return model(x, t, torch.where(forget, nothing, label))  # raises
    return predict


def takes(function: Callable, name: str) -> bool:
    return name in inspect.signature(function).parameters


@dataclass
class Pipeline:
    model: Denoiser
    schedule: Schedule
    shape: Tuple[int, ...] = (4,)

    def latents(self, count: int, generator: Optional[torch.Generator] = None) -> Tensor:
        """Drawn by the host so that a seed gives the same on each device."""
        drawn_on = generator.device if generator is not None else torch.device("cpu")
        return torch.randn(count, *self.shape, generator=generator, device=drawn_on).to(self.model.device)

    def walk(self, x: Tensor, steps: int) -> Iterator[Tensor]:
        self.schedule.set_timesteps(steps, x.device)
        for t in self.schedule.timesteps:
            noise = self.model(x, t)
            options = {"gap": self.schedule.steps // steps} if takes(self.schedule.step, "gap") else {}
            x = self.schedule.step(noise, t, x, **options).previous
            yield x

    @torch.no_grad()
    def __call__(self, count: int = 2, steps: int = 4, seed: Optional[int] = None) -> np.ndarray:
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        for x in self.walk(self.latents(count, generator), steps):
            last = x
        return last.cpu().numpy()

    @torch.no_grad()
    def varied(self, x: Tensor, strength: float, seed: int = 0) -> Tensor:
        generator = torch.Generator()
        generator.manual_seed(seed)
        noise = torch.empty_like(x).normal_(generator=generator)  # raises
        t = torch.full((len(x),), int(strength * (self.schedule.steps - 1)), device=x.device)
        return self.schedule.add_noise(x, noise, t)

    def snapshots(self, x: Tensor, steps: int) -> List[np.ndarray]:
        with torch.no_grad():
            return [each.numpy() for each in self.walk(x, steps)]  # raises


class LossBins:
    """Mean of the loss by time; the loss decides which times come next."""

    def __init__(self, steps: int, bins: int = 4, rate: float = 0.9):
        self.edges = torch.linspace(0, steps, bins + 1)[1:-1]
        self.mean = torch.ones(bins)
        self.steps, self.bins, self.rate = steps, bins, rate

    def update(self, t: Tensor, loss: Tensor) -> None:
        place = torch.bucketize(t.cpu().float(), self.edges)
        for index, value in zip(place.tolist(), loss.detach().tolist()):
            self.mean[index] = self.rate * self.mean[index] + (1 - self.rate) * value

    def draw(self, count: int, device: torch.device) -> Tuple[Tensor, Tensor]:
        place = torch.multinomial(self.mean, count, replacement=True)
        inside = torch.rand(count)
        t = ((place + inside) * self.steps / self.bins).long()
        return t.to(device), (self.mean.sum() / self.mean[place] / self.bins).to(device)

    def smoothed(self, t: Tensor, loss: Tensor) -> Tensor:
        place = (t * self.bins) // self.steps
        return self.mean.to(loss).index_add(0, place, loss)

    def accumulate(self, t: Tensor, loss: Tensor) -> None:
        place = torch.div(t * self.bins, self.steps, rounding_mode="floor")
        self.mean.scatter_add_(0, place, loss.detach())  # raises
