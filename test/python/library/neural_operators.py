"""Neural operators for partial differential equations: layers, models, losses and solvers."""
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Callable, Dict, List, Optional, Sequence, Tuple, Type, Union

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class OperatorConfig:
    channels: int = 4
    inputs: int = 1
    outputs: int = 1
    modes: Tuple[int, int] = (3, 3)
    layers: int = 2
    resolution: int = 8
    padding: int = 2


class SpectralBase(nn.Module):
    """Template of a layer which works on the Fourier coefficients."""

    def __init__(self, config: OperatorConfig):
        super().__init__()
        self.modes = config.modes
        shape = (config.channels, config.channels) + config.modes
        self.upper = nn.Parameter(torch.randn(shape, dtype=torch.cfloat) / config.channels)
        self.lower = nn.Parameter(torch.randn(shape, dtype=torch.cfloat) / config.channels)

    @staticmethod
    def multiply(coefficients, weight):
        return torch.einsum("bixy,ioxy->boxy", coefficients, weight)

    def allocate(self, transformed: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        first, second = self.modes
        transformed = torch.fft.rfft2(x)
        result = self.allocate(transformed)
        result[:, :, :first, :second] = self.multiply(transformed[:, :, :first, :second], self.upper)
        result[:, :, -first:, :second] = self.multiply(transformed[:, :, -first:, :second], self.lower)
        return torch.fft.irfft2(result, s=x.shape[-2:])


class SpectralConv(SpectralBase):
    def allocate(self, transformed):
        return torch.zeros_like(transformed)


class HalfSpectralConv(SpectralBase):
    """Allocates only once for a shape."""

    def allocate(self, transformed):
        return torch.zeros(transformed.shape, dtype=torch.cfloat)


class GridEmbedding:
    """Adds the coordinates as channels."""

    def __init__(self, low: float = 0.0, high: float = 1.0):
        self.low, self.high = low, high

    @lru_cache(maxsize=4)
    def grid(self, height: int, width: int, device=None) -> Tensor:
        rows = torch.linspace(self.low, self.high, height, device=device)
        columns = torch.linspace(self.low, self.high, width, device=device)
        return torch.stack(torch.meshgrid(rows, columns, indexing="ij"))

    def __call__(self, x: Tensor) -> Tensor:
        grid = self.grid(x.size(-2), x.size(-1), x.device)
        return torch.cat([x, grid.expand(x.size(0), -1, -1, -1)], dim=1)


class FourierGridEmbedding(GridEmbedding):
    """Sines and cosines of the coordinates instead of the coordinates."""

    def __init__(self, frequencies: int = 2, **kwargs):
        super().__init__(**kwargs)
        self.frequencies = 2 ** np.arange(frequencies) * np.pi

    def __call__(self, x):
        grid = self.grid(*x.shape[-2:])
        waves = [wave(float(each) * grid) for each in self.frequencies for wave in (torch.sin, torch.cos)]
        encoded = torch.cat(waves).unsqueeze(0).expand(x.size(0), -1, -1, -1)
        return torch.cat([x, encoded], dim=1)  # raises


class DomainPadding:
    def __init__(self, amount: int):
        self.amount = amount

    def pad(self, x):
        return F.pad(x, (0, self.amount, 0, self.amount))

    def crop(self, x):
        return x[..., : x.size(-2) - self.amount, : x.size(-1) - self.amount]


class FourierBlock(nn.Module):
    def __init__(self, config: OperatorConfig, spectral: Type[SpectralBase]):
        super().__init__()
        self.spectral = spectral(config)
        self.skip = nn.Conv2d(config.channels, config.channels, 1)

    def forward(self, x):
        return F.gelu(self.spectral(x) + self.skip(x))  # raises


class FNO(nn.Module):
    def __init__(self, config: OperatorConfig, spectral=SpectralConv, embedding: Optional[GridEmbedding] = None):
        super().__init__()
        self.embedding = embedding or GridEmbedding()
        extra = 4 if isinstance(self.embedding, FourierGridEmbedding) else 2
        self.lift = nn.Conv2d(config.inputs + extra, config.channels, 1)
        self.blocks = nn.ModuleList(FourierBlock(config, spectral) for _ in range(config.layers))
        self.project = nn.Conv2d(config.channels, config.outputs, 1)
        self.padding = DomainPadding(config.padding)

    def forward(self, x):
        hidden = self.padding.pad(self.lift(self.embedding(x)))
        for block in self.blocks:
            hidden = block(hidden)
        return self.project(self.padding.crop(hidden))


class UnitGaussian:
    """Normalises fields pointwise with the statistics of the training set."""

    def __init__(self, samples: Tensor, eps: float = 1e-5):
        self.mean, self.std, self.eps = samples.mean(0), samples.std(0), eps

    def encode(self, x):
        mean, std = self.mean.type_as(x), self.std.type_as(x)
        return (x - mean) / (std + self.eps)

    def decode(self, x, channels: Optional[Sequence[int]] = None):
        mean, std = self.mean, self.std + self.eps
        if channels is not None:
            mean, std = mean[list(channels)], std[list(channels)]
        return x * std + mean  # raises


class RangeNormalizer(UnitGaussian):
    """One mean and one deviation for the whole field."""

    def __init__(self, samples, eps=1e-5):
        self.mean, self.std, self.eps = samples.mean(), samples.std(), eps


def _mlp(sizes: Sequence[int]) -> nn.Sequential:
    layers: List[nn.Module] = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        layers += [nn.Linear(inputs, outputs), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


class DeepONet(nn.Module):
    def __init__(self, sensors: int = 5, width: int = 6, queries: int = 7):
        super().__init__()
        self.branch = _mlp([sensors, 8, width])
        self.trunk = _mlp([1, 8, width])
        self.bias = nn.Parameter(torch.zeros(()))
        self.queries = torch.linspace(0, 1, queries).unsqueeze(1)
        self._basis: Optional[Tensor] = None

    def combine(self, coefficients, basis):
        return coefficients @ basis.t() + self.bias

    def forward(self, sensors, queries: Optional[Tensor] = None):
        queries = self.queries.to(sensors.device) if queries is None else queries
        return self.combine(self.branch(sensors), self.trunk(queries))

    @torch.no_grad()
    def freeze_basis(self):
        self._basis = self.trunk(self.queries.to(self.bias.device))
        return self

    def cached(self, sensors):
        return self.combine(self.branch(sensors), self._basis)

    def coefficients(self, samples: Tensor) -> Tensor:
        """Least squares coefficients of the samples in the trunk basis."""
        basis = self.trunk(self.queries)  # raises
        return torch.linalg.lstsq(basis, samples.t()).solution.t()


class PODBasis(nn.Module):
    """Leading modes of the snapshots as a fixed trunk."""

    def __init__(self, snapshots: Tensor, rank: int):
        super().__init__()
        centred = snapshots - snapshots.mean(0)
        modes = torch.linalg.svd(centred, full_matrices=False)[2][:rank]
        self.register_buffer("modes", modes)
        self.register_buffer("offset", snapshots.mean(0))
        self.energy = np.linalg.svd(centred.cpu().numpy(), compute_uv=False)

    def forward(self, coefficients):
        return coefficients @ self.modes + self.offset

    def truncate(self, tolerance: float) -> "PODBasis":
        share = np.cumsum(self.energy ** 2) / np.sum(self.energy ** 2)
        self.modes = self.modes[: int(np.searchsorted(share, tolerance)) + 1]
        return self


class WaveletTransform(nn.Module):
    """One level of Haar wavelets for a batch of signals."""

    def __init__(self):
        super().__init__()
        root = 1 / math.sqrt(2)
        self.filters: Dict[str, Tensor] = {"analysis": torch.tensor([[[root, root]], [[root, -root]]])}
        self.register_buffer("synthesis", self.filters["analysis"].clone())

    def inverse(self, coefficients):
        return F.conv_transpose1d(coefficients, self.synthesis, stride=2)

    def forward(self, x):
        return F.conv1d(x, self.filters["analysis"], stride=2)  # raises


class GraphKernel(nn.Module):
    """Message passing between points closer than a radius."""

    def __init__(self, width: int = 4, radius: float = 0.6, aggregate: str = "sum"):
        super().__init__()
        self.radius, self.aggregate = radius, aggregate
        self.kernel = _mlp([2, 8, width])
        self.root = nn.Linear(width, width)

    def edges(self, points: Tensor) -> Tuple[Tensor, Tensor]:
        located = points.detach().cpu().numpy()
        distance = np.linalg.norm(located[:, None] - located[None], axis=-1)
        source, target = np.nonzero(distance < self.radius)
        return torch.from_numpy(source), torch.from_numpy(target)

    def forward(self, points, values):
        source, target = self.edges(points)
        messages = self.kernel(points[source] - points[target]) * values[source]
        result = self.root(values)
        if self.aggregate == "dense":
            weight = torch.zeros(len(points), len(points), device=points.device)
            weight[target, source] = messages.mean(1)
            return result + weight @ values
        return result.index_add(0, target, messages)  # raises


class SphericalQuadrature:
    """Integrals over the sphere on Gauss-Legendre latitudes."""

    def __init__(self, latitudes: int):
        nodes, weights = np.polynomial.legendre.leggauss(latitudes)
        self.nodes = torch.as_tensor(nodes, dtype=torch.float)
        self.weights = torch.as_tensor(weights, dtype=torch.float)

    def integrate(self, field: Tensor) -> Tensor:
        zonal = field.mean(-1)
        return 2 * math.pi * torch.tensordot(zonal, self.weights, dims=([-1], [0]))  # raises

    def zonal_mean(self, field: Tensor) -> List[float]:
        return (field.mean(-1).tolist() * self.weights.numpy()).tolist()

    def legendre(self, field: Tensor, degree: int) -> Tensor:
        basis = [torch.ones_like(self.nodes), self.nodes]
        while len(basis) <= degree:
            n = len(basis)
            basis.append(((2 * n - 1) * self.nodes * basis[-1] - (n - 1) * basis[-2]) / n)
        table = (torch.stack(basis[: degree + 1]) * self.weights).to(field)
        return torch.einsum("dk,bkl->bdl", table, field)


class SobolevLoss(nn.Module):
    """Relative loss which weighs high frequencies more."""

    def __init__(self, order: int = 1, dim: int = 1):
        super().__init__()
        self.order, self.dim = order, dim

    def frequencies(self, size: int, like: Tensor) -> Tensor:
        return torch.fft.fftfreq(size, d=1.0 / size).type(like.dtype)

    def symbol(self, like: Tensor) -> Tensor:
        if self.dim == 1:
            squared = torch.fft.fftfreq(like.size(-1), 1.0 / like.size(-1), device=like.device).square()
        else:
            rows = self.frequencies(like.size(-2), like).square()
            columns = self.frequencies(like.size(-1), like).square()
            squared = rows[:, None] + columns[None]
        return (1 + squared) ** (self.order / 2)

    def forward(self, guess, truth):
        axes = tuple(range(-self.dim, 0))
        weight = self.symbol(truth)
        error = torch.fft.fftn(guess - truth, dim=axes).abs() * weight  # raises
        scale = torch.fft.fftn(truth, dim=axes).abs() * weight
        return (error.flatten(1).norm(dim=1) / scale.flatten(1).norm(dim=1)).mean()


class PoissonSolver:
    """Jacobi sweeps with fixed values on the boundary."""

    def __init__(self, resolution: int, sweeps: int = 4):
        self.sweeps, self.spacing = sweeps, torch.tensor(1.0 / (resolution - 1))
        self.interior = torch.zeros(resolution, resolution, dtype=torch.bool)
        self.interior[1:-1, 1:-1] = True

    def neighbours(self, u):
        padded = F.pad(u[None, None], (1, 1, 1, 1))[0, 0]
        return padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]

    def sweep(self, u, source):
        update = 0.25 * (self.neighbours(u) - self.spacing ** 2 * source)
        u = u.clone()
        u[self.interior] = update[self.interior]
        return u

    def solve(self, source: Tensor) -> Tensor:
        u = torch.zeros_like(source)
        for _ in range(self.sweeps):
            u = self.sweep(u, source)
        return u

    def residual(self, u, source):
        value = self.neighbours(u) - 4 * u - self.spacing ** 2 * source
        return torch.where(self.interior, value, torch.zeros_like(value)).norm()  # raises


class Rollout:
    """Applies an operator again and again to its own result."""

    def __init__(self, model: Callable[[Tensor], Tensor], device: Union[str, torch.device], keep: str = "device"):
        self.model, self.device, self.keep = model, torch.device(device), keep

    def store(self, state: Tensor) -> Tensor:
        return state.cpu() if self.keep == "host" else state

    @torch.no_grad()
    def __call__(self, initial: Tensor, steps: int) -> Tensor:
        frames = [initial]
        state = initial.to(self.device)
        for _ in range(steps):
            state = self.model(state)
            frames.append(self.store(state))
        return torch.cat(frames, dim=1)  # raises


class Advection(nn.Module):
    """A reference operator: moves the field by one cell per step."""

    def forward(self, x):
        index = torch.arange(x.size(-1)).roll(1)
        return x[..., index]


class Physics:
    """Residual of the heat equation at random points."""

    def __init__(self, model: nn.Module, viscosity: float = 0.1, points: int = 6):
        self.model, self.points = model, points
        self.viscosity = torch.tensor(viscosity)
        self.generator = torch.Generator().manual_seed(0)

    def sample(self) -> Tensor:
        device = next(self.model.parameters()).device
        return torch.rand(self.points, 2, generator=self.generator).to(device).requires_grad_(True)

    def residual(self, points):
        value = self.model(points)
        slope = torch.autograd.grad(value.sum(), points, create_graph=True)[0]
        second = torch.autograd.grad(slope[:, 1].sum(), points, create_graph=True)[0][:, 1]
        return slope[:, 0] - self.viscosity * second

    def loss(self, initial: Callable[[Tensor], Tensor] = torch.sin) -> Tensor:
        points = self.sample()
        start = points.detach() * torch.tensor([0.0, 1.0])  # raises
        return self.residual(points).square().mean() + (self.model(start) - initial(start[:, 1:])).square().mean()
