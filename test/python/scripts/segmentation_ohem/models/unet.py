import torch
import torch.nn as nn


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(o, o, 3, padding=1), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, in_channels=3, num_classes=4, features=(4, 8), coords=False):
        super().__init__()
        self.coords = coords
        c = in_channels + (2 if coords else 0)
        self.downs, self.ups = nn.ModuleList(), nn.ModuleList()
        for f in features:
            self.downs.append(block(c, f))
            c = f
        self.pool = nn.MaxPool2d(2)
        self.bottleneck = block(c, 2 * c)
        for f in reversed(features):
            self.ups.append(nn.ConvTranspose2d(2 * f, f, 2, 2))
            self.ups.append(block(2 * f, f))
        self.final = nn.Conv2d(features[0], num_classes, 1)

    def _with_coords(self, x):
        b, _, h, w = x.shape
        ys = torch.linspace(-1, 1, h, device=x.device).view(1, 1, h, 1).expand(b, 1, h, w)
        xs = torch.linspace(-1, 1, w).to(x).view(1, 1, 1, w).expand(b, 1, h, w)
        return torch.cat([x, ys, xs], 1)

    def forward(self, x):
        if self.coords:
            x = self._with_coords(x)
        skips = []
        for down in self.downs:
            x = down(x)
            skips.append(x)
            x = self.pool(x)
        x = self.bottleneck(x)
        for i in range(0, len(self.ups), 2):
            x = self.ups[i](x)
            x = self.ups[i + 1](torch.cat((skips[-1 - i // 2], x), dim=1))
        return self.final(x)
