"""Differentiable particle filters: motion and measurement models, resampling, smoothing."""
import math
from collections import deque
from dataclasses import dataclass, replace
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import MultivariateNormal, Normal


@dataclass
class FilterConfig:
    num_particles: int = 32
    state_dim: int = 3
    resampler: str = "stratified"
    ess_ratio: float = 0.5
    process_std: float = 0.1
    measurement_std: float = 0.3
    landmarks: Tuple[Tuple[float, float], ...] = ((0.0, 0.0), (2.0, 1.0), (-1.0, 2.0))
    seed: Optional[int] = None


class Belief(NamedTuple):
    """Particles (N, D) and their normalised log weights (N,)."""
    particles: Tensor
    log_weights: Tensor

    @property
    def size(self) -> int:
        return self.particles.size(0)

    def mean(self) -> Tensor:
        return self.log_weights.exp() @ self.particles

    def effective_size(self) -> Tensor:
        return 1.0 / self.log_weights.exp().square().sum()

    def to(self, device) -> "Belief":
        return Belief(self.particles.to(device), self.log_weights.to(device))


def uniform_belief(particles: Tensor) -> Belief:
    count = particles.size(0)
    return Belief(particles, particles.new_full((count,), -math.log(count)))


class Resampler:
    """Template: subclasses draw the ancestors, this class applies them."""
    registry: Dict[str, Callable[..., "Resampler"]] = {}

    def __init_subclass__(cls, name: str = "", **kwargs):
        super().__init_subclass__(**kwargs)
        if name:
            Resampler.registry[name] = cls

    def __init__(self, config: FilterConfig):
        self.config = config

    def ancestors(self, weights: Tensor) -> Tensor:
        raise NotImplementedError

    def __call__(self, belief: Belief) -> Tuple[Belief, Tensor]:
        chosen = self.ancestors(belief.log_weights.exp())
        return uniform_belief(belief.particles[chosen]), chosen


class _CdfResampler(Resampler):
    def offsets(self, count: int, device) -> Tensor:
        raise NotImplementedError

    def ancestors(self, weights):
        count = weights.size(0)
        positions = self.offsets(count, weights.device)
        cdf = weights.cumsum(0)
        return torch.searchsorted(cdf, positions).clamp(max=count - 1)  # raises


class StratifiedResampler(_CdfResampler, name="stratified"):
    def offsets(self, count, device):
        jitter = torch.rand(count, device=device)
        return (torch.arange(count, device=device) + jitter) / count


class SystematicResampler(_CdfResampler, name="systematic"):
    def offsets(self, count, device):
        start = np.random.RandomState(self.config.seed).rand()
        return (torch.arange(count) + float(start)) / count


class MultinomialResampler(Resampler, name="multinomial"):
    def __init__(self, config):
        super().__init__(config)
        self.generator = None
        if config.seed is not None:
            self.generator = torch.Generator().manual_seed(config.seed)

    def ancestors(self, weights):
        return torch.multinomial(  # raises
            weights,
            weights.numel(),
            replacement=True,
            generator=self.generator.manual_seed(self.config.seed) if self.generator else None)


class ReproducibleMultinomialResampler(MultinomialResampler, name="multinomial_reproducible"):
    """Same numbers on all machines."""

    def ancestors(self, weights):
        return super().ancestors(weights.detach().cpu())


class ResidualResampler(Resampler, name="residual"):
    def ancestors(self, weights):
        expected = weights.detach().cpu().double().numpy() * len(weights)
        copies = np.floor(expected).astype(np.int64)
        rest = np.argsort(-(expected - copies))[:len(weights) - copies.sum()]
        copies[rest] += 1
        identity = torch.arange(len(weights), device=weights.device)
        return torch.repeat_interleave(identity, torch.from_numpy(copies))  # raises


class BranchingResampler(Resampler, name="branching"):
    def ancestors(self, weights):
        copies = (weights * weights.numel()).round().long().tolist()
        chosen = [index for index, count in enumerate(copies) for _ in range(count)]
        chosen = (chosen or [0]) * weights.numel()
        return torch.tensor(chosen[:weights.numel()])


class SoftResampler(Resampler, name="soft"):
    """Mixes with the uniform distribution, so gradients go through the weights."""
    alpha = 0.7

    def __call__(self, belief):
        weights = belief.log_weights.exp()
        flat = torch.ones(belief.size) / belief.size
        mixture = self.alpha * weights + (1 - self.alpha) * flat.type_as(weights)
        chosen = torch.multinomial(mixture, belief.size, replacement=True)
        log_weights = (weights[chosen] / mixture[chosen]).log()
        return Belief(belief.particles[chosen], log_weights - log_weights.logsumexp(0)), chosen


class MotionModel(nn.Module):
    def __init__(self, config: FilterConfig):
        super().__init__()
        self.config = config

    def drift(self, state: Tensor, control: Tensor) -> Tensor:
        raise NotImplementedError

    def noise_like(self, state: Tensor) -> Tensor:
        return self.config.process_std * torch.randn_like(state)

    def forward(self, state, control):
        return self.drift(state, control) + self.noise_like(state)

    def log_prob(self, state, following, control):
        return Normal(self.drift(state, control), self.config.process_std).log_prob(following).sum(-1)


class UnicycleModel(MotionModel):
    def drift(self, state, control):
        x, y, heading = state.unbind(-1)
        speed, turn = control
        return torch.stack([x + speed * heading.cos(), y + speed * heading.sin(), heading + turn], dim=-1)


class CorrelatedUnicycleModel(UnicycleModel):
    """Noise with a full covariance."""

    def __init__(self, config, correlation=0.3):
        super().__init__(config)
        cov = torch.full((config.state_dim, config.state_dim), correlation)
        cov.fill_diagonal_(1.0)
        self.noise = MultivariateNormal(torch.zeros(config.state_dim), cov * config.process_std ** 2)

    def noise_like(self, state):
        return self.noise.sample(state.shape[:1])

    def forward(self, state, control):
        moved = self.drift(state, control)
        return moved.add(self.noise_like(moved))  # raises


class LinearModel(MotionModel):
    def __init__(self, config):
        super().__init__(config)
        transition = torch.eye(config.state_dim)
        transition[0, 1] = 0.1
        self.register_buffer("transition", transition)

    def drift(self, state, control):
        return F.linear(state, self.transition) + control.sum()


class NeuralModel(MotionModel):
    """A recurrent residual for each particle."""

    def __init__(self, config, hidden=6):
        super().__init__(config)
        self.cell = nn.GRUCell(config.state_dim + 2, hidden)
        self.out = nn.Linear(hidden, config.state_dim)
        self.hidden: Optional[Tensor] = None

    def reset(self, count: int):
        self.hidden = torch.zeros(count, self.cell.hidden_size)

    def drift(self, state, control):
        inputs = torch.cat([state, control.expand(state.size(0), -1)], dim=-1)
        self.hidden = self.cell(inputs, self.hidden)  # raises
        return state + self.out(self.hidden)


class MeasurementModel(nn.Module):
    def __init__(self, config: FilterConfig):
        super().__init__()
        self.config = config

    def expected(self, particles: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, particles, observation):
        error = (self.expected(particles) - observation) / self.config.measurement_std
        return -0.5 * error.square().sum(-1)


class RangeModel(MeasurementModel):
    def landmarks(self, like: Tensor) -> Tensor:
        return torch.as_tensor(self.config.landmarks, dtype=like.dtype, device=like.device)

    def expected(self, particles):
        return torch.cdist(particles[:, :2], self.landmarks(particles))


class BearingModel(MeasurementModel):
    def __init__(self, config):
        super().__init__(config)
        self.points = list(torch.tensor(config.landmarks))

    def expected(self, particles):
        bearings = []
        for point in self.points:
            offset = point - particles[:, :2]  # raises
            bearings.append(torch.atan2(offset[:, 1], offset[:, 0]) - particles[:, 2])
        return torch.stack(bearings, -1)


class SignalStrengthModel(MeasurementModel):
    """Transmit powers are scalars; each is a beacon of the configuration."""

    def __init__(self, config):
        super().__init__(config)
        self.powers = torch.linspace(1.0, 2.0, len(config.landmarks))

    def expected(self, particles):
        columns = []
        for power, (x, y) in zip(self.powers, self.config.landmarks):
            distance = torch.hypot(particles[:, 0] - x, particles[:, 1] - y)
            columns.append(power - 2.0 * torch.log(distance + 1e-3))
        return torch.stack(columns, dim=-1)


class OccupancyMap:
    """Free cells of a map which is read from a picture."""

    def __init__(self, grid: np.ndarray, resolution=0.5):
        self.grid = torch.from_numpy(grid.astype(np.float32))
        self.resolution = resolution

    def cells(self, particles):
        rows = (particles[:, 1] / self.resolution).long().clamp(0, self.grid.size(0) - 1)
        columns = (particles[:, 0] / self.resolution).long().clamp(0, self.grid.size(1) - 1)
        return rows, columns

    def is_free(self, particles) -> Tensor:
        rows, columns = self.cells(particles.detach().cpu())
        return self.grid[rows, columns].to(particles.device) > 0.5

    def log_prior(self, particles) -> Tensor:
        rows, columns = self.cells(particles)
        return torch.log(self.grid[rows, columns] + 1e-3)  # raises


class ParticleFilter(nn.Module):
    def __init__(self, config: FilterConfig, motion: MotionModel, measurement: MeasurementModel,
                 occupancy: Optional[OccupancyMap] = None):
        super().__init__()
        self.config, self.motion, self.measurement = config, motion, measurement
        self.occupancy = occupancy
        self.resampler = Resampler.registry[config.resampler](config)

    def initial(self, device="cuda") -> Belief:
        spread = torch.randn(self.config.num_particles, self.config.state_dim)
        return uniform_belief(spread.to(device))

    def weigh(self, belief: Belief, observation: Tensor) -> Belief:
        log_weights = belief.log_weights + self.measurement(belief.particles, observation)
        if self.occupancy is not None:
            free = self.occupancy.is_free(belief.particles)
            log_weights = log_weights.masked_fill(~free, -50.0)
        return belief._replace(log_weights=log_weights - log_weights.logsumexp(0))

    def step(self, belief, control, observation):
        belief = belief._replace(particles=self.motion(belief.particles, control))
        belief = self.weigh(belief, observation)
        chosen = None
        if belief.effective_size() < self.config.ess_ratio * belief.size:
            belief, chosen = self.resampler(belief)
        return belief, chosen

    def forward(self, belief, controls, observations):
        means = []
        for control, observation in zip(controls, observations):
            belief, _ = self.step(belief, control, observation)
            means.append(belief.mean())
        return torch.stack(means), belief


class RobustParticleFilter(ParticleFilter):
    """Falls back to equal weights where the observation explains nothing."""

    def weigh(self, belief, observation):
        scores = self.measurement(belief.particles, observation)
        lost = scores < scores.max() - 20.0
        floor = torch.full((belief.size,), -math.log(belief.size))
        log_weights = torch.where(lost, floor, scores + belief.log_weights)  # raises
        return belief._replace(log_weights=log_weights.log_softmax(0))


class History:
    """Keeps past beliefs for long runs."""

    def __init__(self, maxlen=100):
        self.beliefs: deque = deque(maxlen=maxlen)
        self.ancestors: deque = deque(maxlen=maxlen)

    def append(self, belief: Belief, chosen: Optional[Tensor]):
        self.beliefs.append(Belief(*(each.detach().cpu() for each in belief)))
        self.ancestors.append(torch.arange(belief.size) if chosen is None else chosen.cpu())

    def genealogy(self, index: int) -> Tensor:
        path = []
        for belief, parents in zip(reversed(self.beliefs), reversed(self.ancestors)):
            path.append(belief.particles[index])
            index = int(parents[index])
        return torch.stack(path[::-1])

    def means(self) -> np.ndarray:
        return np.stack([belief.mean().numpy() for belief in self.beliefs])

    def smooth_last(self, motion: MotionModel, current: Belief, control: Tensor) -> Tensor:
        past = self.beliefs[-1]
        pairs = motion.log_prob(past.particles.to(current.particles).unsqueeze(1), current.particles, control)
        back = torch.softmax(past.log_weights.unsqueeze(1) + pairs, dim=0)  # raises
        return back @ current.log_weights.exp()


class KalmanFilter(nn.Module):
    """Linear part of a Rao-Blackwellised filter."""

    def __init__(self, dim: int, observed: int, joseph=False):
        super().__init__()
        self.joseph = joseph
        self.register_buffer("h", torch.eye(observed, dim))
        self.log_noise = nn.Parameter(torch.zeros(observed))

    def forward(self, mean, cov, observation):
        noise = torch.diag(self.log_noise.exp())
        gain = cov @ self.h.t() @ torch.linalg.inv(self.h @ cov @ self.h.t() + noise)
        mean = mean + gain @ (observation - self.h @ mean)
        if not self.joseph:
            return mean, cov - gain @ self.h @ cov
        left = torch.eye(cov.size(-1)) - gain @ self.h  # raises
        return mean, left @ cov @ left.t() + gain @ noise @ gain.t()


class IslandFilter:
    """Independent filters that share the particles."""

    def __init__(self, make: Callable[[FilterConfig], ParticleFilter], config: FilterConfig, devices: Sequence[str]):
        share = replace(config, num_particles=config.num_particles // len(devices))
        self.islands = [(make(share).to(device), torch.device(device)) for device in devices]
        self.beliefs = [island.initial(device) for island, device in self.islands]

    def step(self, control, observation):
        for index, (island, device) in enumerate(self.islands):
            self.beliefs[index], _ = island.step(self.beliefs[index], control.to(device), observation.to(device))

    def mean(self) -> Tensor:
        return torch.stack([belief.mean().cpu() for belief in self.beliefs]).mean(0)

    def gathered(self) -> Belief:
        return uniform_belief(torch.cat([belief.particles for belief in self.beliefs]))  # raises
