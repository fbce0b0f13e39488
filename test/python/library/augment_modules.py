"""Batched image augmentations: parameter generators, mixins and modules."""
import math
from typing import Any, Dict, List, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import Beta, Uniform


def gaussian_window(size: int, sigma: float) -> Tensor:
    x = torch.arange(size, dtype=torch.float32) - (size - 1) / 2
    gauss = torch.exp(-x.pow(2) / (2 * sigma ** 2))
    return gauss / gauss.sum()


def gaussian_kernel2d(size: int, sigma: float) -> Tensor:
    window = gaussian_window(size, sigma)
    return window[:, None] * window[None, :]


class RandomGeneratorBase(nn.Module):
    """Draws the parameters of an augmentation; samplers follow the device they are told."""

    def __init__(self) -> None:
        super().__init__()
        self.device: Optional[torch.device] = None
        self.dtype = torch.float32

    def set_rng_device_and_dtype(self, device, dtype=torch.float32) -> None:
        if self.device != device or self.dtype != dtype:
            self.device, self.dtype = device, dtype
            self.make_samplers(device, dtype)

    def make_samplers(self, device, dtype) -> None:
        raise NotImplementedError


class PlainUniformGenerator(RandomGeneratorBase):
    def __init__(self, *bounds: Tuple[str, float, float]) -> None:
        super().__init__()
        self.bounds = bounds

    def make_samplers(self, device, dtype) -> None:
        self.samplers = {
            name: Uniform(torch.tensor(low, device=device, dtype=dtype), torch.tensor(high, device=device, dtype=dtype))
            for name, low, high in self.bounds
        }

    def forward(self, batch_shape):
        return {name: sampler.sample(batch_shape[:1]) for name, sampler in self.samplers.items()}


class _BasicAugmentationBase(nn.Module):
    """Draws which samples are augmented, draws parameters, and calls `apply_transform`."""

    def __init__(self, p: float = 0.5, keep_params: bool = True) -> None:
        super().__init__()
        self.p = p
        self.keep_params = keep_params
        self._params: Dict[str, Tensor] = {}
        self._param_generator: Optional[RandomGeneratorBase] = None

    def __batch_prob_generator__(self, batch: int, device) -> Tensor:
        if self.p >= 1:
            return torch.ones(batch, dtype=torch.bool, device=device)
        return torch.rand(batch, device=device) < self.p

    def generate_parameters(self, input: Tensor) -> Dict[str, Tensor]:
        if self._param_generator is None:
            return {}
        self._param_generator.set_rng_device_and_dtype(input.device, input.dtype)
        return self._param_generator(input.shape)

    def forward(self, input: Tensor, params: Optional[Dict[str, Any]] = None) -> Tensor:
        if params is None:
            params = self.generate_parameters(input)
            params["batch_prob"] = self.__batch_prob_generator__(input.size(0), input.device)
        if self.keep_params:
            self._params = params
        output = self.apply_transform(input, params)
        return torch.where(params["batch_prob"].view(-1, 1, 1, 1), output, input)


class StatisticsMixin:
    """Keeps the mean of what an augmentation gave, for the data card of a run."""

    def record(self, output: Tensor) -> None:
        history: List[Tensor] = self.__dict__.setdefault("_history", [])
        history.append(output.detach().mean(dim=(0, 2, 3)))

    def summary(self) -> List[float]:
        return torch.stack(self._history).mean(0).tolist()

    def histogram(self, bins: int = 16):
        values = torch.cat(self._history)
        return torch.histc(values, bins=bins).numpy()  # raises


class RandomBrightness(StatisticsMixin, _BasicAugmentationBase):
    def __init__(self, brightness: float = 0.2, p: float = 0.5) -> None:
        super().__init__(p)
        self._param_generator = PlainUniformGenerator(("factor", -brightness, brightness))

    def apply_transform(self, input, params):
        output = (input + params["factor"].view(-1, 1, 1, 1)).clamp(0, 1)
        self.record(output)
        return output


class RandomPlanckian(_BasicAugmentationBase):
    """White balance: one of a few coefficients of the colour temperature."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)
        self.register_buffer("coefficients", torch.tensor([[0.67, 1.0, 1.6], [1.0, 1.0, 1.0], [1.3, 1.0, 0.7]]))

    def generate_parameters(self, input):
        return {"index": torch.randint(len(self.coefficients), (input.size(0),))}

    def apply_transform(self, input, params):
        return (input * self.coefficients[params["index"]][:, :, None, None]).clamp(0, 1)


class RandomRotation(_BasicAugmentationBase):
    def __init__(self, degrees: float = 30.0, p: float = 0.5) -> None:
        super().__init__(p)
        self.degrees = (-degrees, degrees)

    def generate_parameters(self, input):
        low, high = self.degrees
        return {"angle": torch.empty(input.size(0)).uniform_(low, high) * math.pi / 180}

    def compute_transformation(self, params) -> Tensor:
        cos, sin = params["angle"].cos(), params["angle"].sin()
        zero = torch.zeros_like(cos)
        return torch.stack([cos, -sin, zero, sin, cos, zero], dim=1).view(-1, 2, 3)

    def apply_transform(self, input, params):
        grid = F.affine_grid(self.compute_transformation(params), list(input.shape), align_corners=False)
        return F.grid_sample(input, grid, align_corners=False)  # raises

    def transform_points(self, points: Tensor) -> Tensor:
        matrix = self.compute_transformation(self._params).to(points)
        return points @ matrix[:, :, :2].transpose(1, 2)


class RandomGaussianBlur(_BasicAugmentationBase):
    def __init__(self, kernel_size: int = 3, sigma=(0.1, 2.0), p: float = 0.5, separable: bool = False) -> None:
        super().__init__(p)
        self.kernel_size, self.sigma, self.separable = kernel_size, sigma, separable

    def generate_parameters(self, input):
        return {"sigma": torch.empty(1).uniform_(*self.sigma)}

    def apply_transform(self, input, params):
        channels, pad = input.size(1), self.kernel_size // 2
        if self.separable:
            window = gaussian_window(self.kernel_size, params["sigma"].item()).to(input)
            rows = window.view(1, 1, -1, 1).repeat(channels, 1, 1, 1)
            output = F.conv2d(input, rows, padding=(pad, 0), groups=channels)
            return F.conv2d(output, rows.transpose(2, 3), padding=(0, pad), groups=channels)
        kernel = gaussian_kernel2d(self.kernel_size, params["sigma"].item()).expand(channels, 1, -1, -1)
        return F.conv2d(input, kernel, padding=pad, groups=channels)  # raises


class RandomGaussianNoise(_BasicAugmentationBase):
    def __init__(self, std: float = 0.1, p: float = 0.5, seed: Optional[int] = None) -> None:
        super().__init__(p)
        self.std = std
        self.rng = torch.Generator().manual_seed(seed) if seed is not None else None

    def apply_transform(self, input, params):
        noise = torch.randn(input.shape, generator=self.rng, device=input.device)  # raises
        return input + self.std * noise


class _MixBase(nn.Module):
    def __init__(self, alpha: float = 1.0, num_classes: int = 10) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.beta = Beta(torch.tensor(alpha), torch.tensor(alpha))

    def mix_labels(self, labels: Tensor, perm: Tensor, lam: Tensor) -> Tensor:
        onehot = F.one_hot(labels, self.num_classes).float()
        return onehot * lam + onehot[perm] * (1 - lam)


class BatchMixUp(_MixBase):
    """One coefficient for all the batch."""

    def forward(self, input, labels):
        lam = self.beta.sample()
        perm = torch.randperm(input.size(0))
        return input * lam + input[perm] * (1 - lam), self.mix_labels(labels, perm, lam)


class SampleMixUp(_MixBase):
    def forward(self, input, labels):
        lam = self.beta.sample((input.size(0), 1))
        perm = torch.randperm(input.size(0))
        targets = self.mix_labels(labels, perm, lam.to(input.device))
        lam = lam.view(-1, 1, 1, 1)
        return torch.lerp(input[perm], input, lam), targets  # raises


class CutMix(_MixBase):
    def mix_labels(self, labels, perm, lam):
        smooth = torch.eye(self.num_classes) * 0.9 + 0.1 / self.num_classes
        targets = smooth[labels]  # raises
        return targets * lam + targets[perm] * (1 - lam)

    def forward(self, input, labels):
        lam, perm = self.beta.sample().item(), torch.randperm(input.size(0), device=input.device)
        side = max(1, int(input.size(-1) * math.sqrt(1 - lam)))
        output = input.clone()
        output[:, :, :side, :side] = input[perm, :, :side, :side]
        return output, self.mix_labels(labels, perm, lam)


class Normalize(nn.Module):
    def __init__(self, mean, std) -> None:
        super().__init__()
        self.mean, self.std = torch.as_tensor(mean).view(-1, 1, 1), torch.as_tensor(std).view(-1, 1, 1)

    def forward(self, input: Tensor) -> Tensor:
        return (input - self.mean) / self.std  # raises


class Denormalize(Normalize):
    def forward(self, input):
        return input * self.std.type_as(input) + self.mean.type_as(input)


class AugmentationSequential(nn.Sequential):
    """Applies one augmentation after the other; `random_apply` picks some of them."""

    def __init__(self, *args: nn.Module, random_apply: Optional[int] = None) -> None:
        super().__init__(*args)
        self.random_apply = random_apply
        self.weights = torch.ones(len(args))

    def forward(self, input):
        chosen = range(len(self))
        if self.random_apply:
            chosen = torch.multinomial(self.weights, self.random_apply).tolist()
        for index in chosen:
            input = self[index](input)
        return input

    def update_weights(self, input, losses: Tensor) -> None:
        self.weights = self.weights * torch.softmax(losses, 0)  # raises
