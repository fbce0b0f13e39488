import torch
import torch.nn as nn
import torch.nn.functional as F


def block(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, classes, widths=(8, 16, 32), coordinates=False):
        super().__init__()
        self.coordinates = coordinates
        channels = [3 if coordinates else 1, *widths]
        self.down = nn.ModuleList(block(a, b) for a, b in zip(channels, channels[1:]))
        self.up = nn.ModuleList(block(a + b, b) for a, b in zip(widths[:0:-1], widths[-2::-1]))
        self.head = nn.Conv2d(widths[0], classes, 1)

    def add_coordinates(self, x):
        n, _, height, width = x.shape
        rows = torch.linspace(-1, 1, height).to(x).view(1, 1, -1, 1).expand(n, 1, height, width)
        columns = torch.linspace(-1, 1, width).type_as(x).expand(n, 1, height, width)
        return torch.cat([x, rows, columns], dim=1)

    def forward(self, x):
        if self.coordinates:
            x = self.add_coordinates(x)
        skips = []
        for number, layer in enumerate(self.down):
            x = layer(x if number == 0 else F.max_pool2d(x, 2))
            skips.append(x)
        skips.pop()
        for layer in self.up:
            skip = skips.pop()
            x = layer(torch.cat([F.interpolate(x, size=skip.shape[-2:], mode="nearest"), skip], dim=1))
        return self.head(x)
