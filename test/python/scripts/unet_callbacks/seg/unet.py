import torch
import torch.nn as nn
import torch.nn.functional as F


def block(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


class CoordConv(nn.Module):
    """Adds two channels of coordinates; the grid is kept between calls of the same shape."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs + 2, outputs, 1)
        self.grid = None

    def forward(self, x):
        height, width = x.shape[-2:]
        if self.grid is None or self.grid.shape[-2:] != (height, width):
            ys = torch.linspace(-1, 1, height).view(-1, 1).expand(height, width)
            xs = torch.linspace(-1, 1, width).view(1, -1).expand(height, width)
            self.grid = torch.stack([ys, xs]).unsqueeze(0).to(x.device)
        grid = self.grid.expand(x.size(0), -1, -1, -1)
        return self.conv(torch.cat([x, grid], dim=1))  # raises


class UNet(nn.Module):
    def __init__(self, classes, width=4, depth=2, coords=False):
        super().__init__()
        self.stem = CoordConv(3, width) if coords else nn.Conv2d(3, width, 1)
        widths = [width * 2**i for i in range(depth + 1)]
        self.down = nn.ModuleList(block(a, b) for a, b in zip(widths, widths[1:]))
        self.up = nn.ModuleList(block(a + b, a) for a, b in reversed(list(zip(widths, widths[1:]))))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        x = self.stem(x)  # raises
        skips = []
        for layer in self.down:
            skips.append(x)
            x = layer(F.max_pool2d(x, 2))
        for layer, skip in zip(self.up, reversed(skips)):
            x = F.interpolate(x, scale_factor=2, mode="nearest")
            x = layer(torch.cat([x, skip], dim=1))
        return self.head(x)
