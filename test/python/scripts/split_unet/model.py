import torch
import torch.nn as nn

from blocks import Bottleneck, Down, Up


class SplitUNet(nn.Module):
    """The encoder on one GPU, the decoder on another."""

    def __init__(self, width, depth, first, second):
        super().__init__()
        self.first, self.second = first, second
        chans = [1] + [width * 2 ** i for i in range(depth)]
        self.downs = nn.ModuleList(Down(a, b) for a, b in zip(chans[:-1], chans[1:])).to(first)
        self.mid = Bottleneck(chans[-1]).to(first)
        ups = list(zip(chans[:0:-1], chans[:0:-1]))
        self.ups = nn.ModuleList()
        previous = chans[-1]
        for _, c in ups:
            self.ups.append(Up(previous, c))
            previous = c
        self.ups.to(second)
        self.head = nn.Conv2d(previous, 1, 1).to(second)
        self.scale = nn.Parameter(torch.ones(1, device=second))

    def encode(self, x):
        skips = []
        for down in self.downs:
            x, skip = down(x)
            skips.append(skip)
        return self.mid(x), skips

    def decode(self, x, skips):
        for up, skip in zip(self.ups, reversed(skips)):
            x = up(x, skip)
        return self.head(x) * self.scale

    def forward(self, x):
        x, skips = self.encode(x.to(self.first))
        return self.decode(x.to(self.second), [s.to(self.second) for s in skips])
