import torch
import torch.nn as nn


class Observer(nn.Module):
    """Watches tensors and says by how much they are to be scaled."""

    def __init__(self, bits):
        super().__init__()
        self.top = 2 ** (bits - 1) - 1

    def scale(self):
        raise NotImplementedError


class MinMax(Observer):
    def __init__(self, bits):
        super().__init__(bits)
        self.register_buffer('low', torch.tensor(0.0))
        self.register_buffer('high', torch.tensor(0.0))

    def forward(self, x):
        self.low = torch.minimum(self.low, x.detach().min())
        self.high = torch.maximum(self.high, x.detach().max())

    def scale(self):
        return torch.maximum(-self.low, self.high).clamp(min=1e-6) / self.top


class MovingMax(Observer):
    def __init__(self, bits, rate=0.1):
        super().__init__(bits)
        self.rate = rate
        self.level = None

    def forward(self, x):
        now = x.detach().abs().max()
        self.level = now if self.level is None else torch.lerp(self.level, now, self.rate)

    def scale(self):
        return self.level.clamp(min=1e-6) / self.top


class Histogram(Observer):
    """The level below which nearly all values are; counts are kept on the host."""

    def __init__(self, bits, bins=64, most=8.0, part=0.999):
        super().__init__(bits)
        self.most, self.part = most, part
        self.counts = torch.zeros(bins)

    def forward(self, x):
        values = x.detach().abs().float().cpu()
        self.counts += torch.histc(values, len(self.counts), 0, self.most)

    def scale(self):
        cumulative = self.counts.cumsum(0) / self.counts.sum()
        at = int((cumulative < self.part).sum()) + 1
        return torch.tensor(at * self.most / len(self.counts) / self.top)


class PerChannel(Observer):
    def __init__(self, bits, channels):
        super().__init__(bits)
        self.peak = torch.zeros(channels)

    def forward(self, x):
        self.peak = x.detach().flatten(1).abs().amax(1).cpu()

    def scale(self):
        return self.peak.clamp(min=1e-6) / self.top


ACTIVATIONS = {'minmax': MinMax, 'moving': MovingMax, 'histogram': Histogram}
