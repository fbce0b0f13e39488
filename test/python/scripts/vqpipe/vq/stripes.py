import math

import torch


def stripes(batch, size=8):
    """Endless striped images."""
    generator = torch.Generator().manual_seed(21)
    line = torch.arange(size).float()
    while True:
        angle, phase = torch.rand(2, batch, 1, 1, 1, generator=generator).unbind(0)
        angle = angle * math.pi
        grid = line.view(1, 1, 1, -1) * angle.cos() + line.view(1, 1, -1, 1) * angle.sin()
        yield torch.sin(grid + 6.28 * phase)
