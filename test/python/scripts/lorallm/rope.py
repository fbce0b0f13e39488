import torch


class RotaryTable:
    """cos and sin for the positions asked so far; grows when needed."""

    def __init__(self, head_dim, base=10000.0):
        self.inv_freq = 1.0 / base ** (torch.arange(0, head_dim, 2).float() / head_dim)
        self.size = 0
        self.cos = self.sin = None

    def _grow(self, size, device):
        angles = torch.outer(torch.arange(size).float(), self.inv_freq)
        angles = torch.cat([angles, angles], -1)
        self.cos, self.sin = angles.cos().to(device), angles.sin().to(device)
        self.size = size

    def get(self, start, length, device):
        if start + length > self.size or self.cos.device != device:
            self._grow(max(16, 2 * (start + length)), device)
        return self.cos[start:start + length], self.sin[start:start + length]


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-b, a], dim=-1) * sin
