import torch
import torch.nn as nn
import torch.nn.functional as F


class DoubleConv(nn.Sequential):
    def __init__(self, i, o):
        super().__init__(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(True), nn.Conv2d(o, o, 3, padding=1), nn.ReLU(True))


class CoordConv(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.conv = nn.Conv2d(2, o, 1)

    def forward(self, x):
        h, w = x.shape[-2:]
        ys, xs = torch.linspace(-1, 1, h), torch.linspace(-1, 1, w)
        grid = torch.stack(torch.meshgrid(ys, xs, indexing="ij")).unsqueeze(0)
        return x + self.conv(grid.to(x))


class UNet(nn.Module):
    def __init__(self, i, classes, widths):
        super().__init__()
        self.inc = DoubleConv(i, widths[0])
        self.down = nn.ModuleList([DoubleConv(a, b) for a, b in zip(widths, widths[1:])])
        self.up = nn.ModuleList([DoubleConv(a + b, a) for a, b in reversed(list(zip(widths, widths[1:])))])
        self.coord = CoordConv(widths[-1])
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x):
        skips = [self.inc(x)]
        for block in self.down:
            skips.append(block(F.max_pool2d(skips[-1], 2)))
        x = self.coord(skips.pop())
        for block in self.up:
            skip = skips.pop()
            x = F.interpolate(x, size=skip.shape[-2:], mode="nearest")
            x = block(torch.cat([x, skip], dim=1))
        return self.head(x)
