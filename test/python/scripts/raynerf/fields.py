import torch
import torch.nn as nn


class TruncatedExp(torch.autograd.Function):
    """exp whose gradient does not explode."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(max=15).exp()

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad * x.clamp(-15, 10).exp()


class DampNear(torch.autograd.Function):
    """The identity; samples next to the camera get little of the gradient, against floaters."""

    @staticmethod
    def forward(ctx, density):
        ctx.ramp = torch.linspace(0.1, 1.0, density.shape[-1])
        return density.view_as(density)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.ramp  # raises


class Fourier(nn.Module):
    def __init__(self, bands):
        super().__init__()
        self.register_buffer('bands', 2.0 ** torch.arange(bands), persistent=False)
        self.width = 3 + 6 * bands

    def forward(self, x):
        angle = (x[..., None] * self.bands).flatten(-2)
        return torch.cat([x, angle.sin(), angle.cos()], -1)


class GaussianFourier(nn.Module):
    """Random directions in place of the axes."""

    def __init__(self, bands, sigma=2.0):
        super().__init__()
        self.matrix = torch.randn(3, 3 * bands) * sigma
        self.width = 3 + 6 * bands

    def forward(self, x):
        angle = x @ self.matrix  # raises
        return torch.cat([x, angle.sin(), angle.cos()], -1)


class RadianceField(nn.Module):
    def __init__(self, encoding, hidden=24):
        super().__init__()
        self.encode = encoding
        self.trunk = nn.Sequential(nn.Linear(encoding.width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.density = nn.Linear(hidden, 1)
        self.colour = nn.Sequential(nn.Linear(hidden + 3, hidden), nn.ReLU(), nn.Linear(hidden, 3), nn.Sigmoid())

    def forward(self, points, directions):
        h = self.trunk(self.encode(points))
        density = TruncatedExp.apply(self.density(h).squeeze(-1))
        return density, self.colour(torch.cat([h, directions.unsqueeze(-2).expand_as(points)], -1))


ENCODINGS = {'fourier': Fourier, 'gaussian': GaussianFourier}
