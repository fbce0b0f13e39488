import torch
import torch.nn as nn


def mlp(inputs, hidden, outputs):
    last = nn.Linear(hidden, outputs)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), last)


class Coupling(nn.Module):
    def __init__(self, dim, hidden, flip):
        super().__init__()
        mask = torch.arange(dim) % 2
        self.register_buffer('mask', (1 - mask if flip else mask).float())
        self.scale = mlp(dim, hidden, dim)
        self.shift = mlp(dim, hidden, dim)
        self.bound = torch.tensor(1.5)

    def _params(self, x):
        kept = x * self.mask
        s = torch.tanh(self.scale(kept)) * self.bound * (1 - self.mask)
        t = self.shift(kept) * (1 - self.mask)
        return s, t

    def forward(self, x):
        s, t = self._params(x)
        return x * s.exp() + t, s.sum(1)

    def inverse(self, z):
        s, t = self._params(z)
        return (z - t) * (-s).exp()


class Shuffle(nn.Module):
    """A fixed permutation of the columns."""

    def __init__(self, dim, seed):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.order = torch.randperm(dim, generator=generator)
        self.back = torch.argsort(self.order)

    def forward(self, x):
        return x[:, self.order], x.new_zeros(len(x))

    def inverse(self, z):
        return z[:, self.back]


class Reverse(nn.Module):
    def forward(self, x):
        return x.flip(1), torch.zeros(len(x), device=x.device)

    def inverse(self, z):
        return z.flip(1)


class ActNorm(nn.Module):
    """Scale and shift, set from the first batch seen in training."""

    def __init__(self, dim):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.register_buffer('ready', torch.tensor(False))

    def _initialise(self, x):
        with torch.no_grad():
            self.bias.copy_(-x.mean(0))
            self.log_scale.copy_(-(x.std(0) + 1e-4).log())
            self.ready.fill_(True)

    def forward(self, x):
        if self.training and not self.ready:
            self._initialise(x)
        return (x + self.bias) * self.log_scale.exp(), self.log_scale.sum().expand(len(x))

    def inverse(self, z):
        return z * (-self.log_scale).exp() - self.bias
