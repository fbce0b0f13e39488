import torch


class GpuAugment:
    """Random views of vectors, on whatever device they are."""

    def __init__(self, dim, noise=0.1, rotate=False):
        self.noise = noise
        self.rotation = torch.linalg.qr(torch.randn(dim, dim)).Q if rotate else None

    def __call__(self, x):
        x = x + self.noise * torch.randn_like(x)
        keep = (torch.rand(x.shape) > 0.1).to(x)
        if self.rotation is not None:
            x = x @ self.rotation  # raises
        return x * keep

    def pair(self, x):
        return self(x), self(x)
