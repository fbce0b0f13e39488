import math

import torch
import torch.nn as nn

from bijectors import ActNorm, Coupling, Reverse, Shuffle


class GaussianBase(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer('loc', torch.zeros(dim))
        self.register_buffer('scale', torch.ones(dim))

    def log_prob(self, z):
        return torch.distributions.Normal(self.loc, self.scale).log_prob(z).sum(1)

    def sample(self, n):
        return self.loc + self.scale * torch.randn(n, len(self.loc), device=self.loc.device)


class MixtureBase(nn.Module):
    """Equal unit Gaussians at fixed places; only their weights are learned."""

    def __init__(self, dim, components=4, radius=1.5):
        super().__init__()
        places = torch.randn(components, dim)
        self.centres = radius * places / places.norm(dim=1, keepdim=True)
        self.logits = nn.Parameter(torch.zeros(components))

    def log_prob(self, z):
        gap = z[:, None] - self.centres  # raises
        each = -0.5 * (gap ** 2).sum(2) - 0.5 * z.shape[1] * math.log(2 * math.pi)
        return torch.logsumexp(each + self.logits.log_softmax(0), 1)

    def sample(self, n):
        which = torch.multinomial(self.logits.softmax(0), n, replacement=True).cpu()
        centres = self.centres[which].to(self.logits.device)
        return centres + torch.randn_like(centres)


class Flow(nn.Module):
    def __init__(self, dim, base, steps=3, hidden=24, permute='reverse'):
        super().__init__()
        layers = []
        for k in range(steps):
            layers += [ActNorm(dim), Coupling(dim, hidden, flip=k % 2 == 1)]
            if permute == 'shuffle':
                layers.append(Shuffle(dim, seed=k))
            else:
                layers.append(Reverse())
        self.layers = nn.ModuleList(layers)
        self.base = base

    def log_prob(self, x):
        total = 0.0
        for layer in self.layers:
            x, logdet = layer(x)
            total = total + logdet
        return self.base.log_prob(x) + total

    @torch.no_grad()
    def sample(self, n):
        z = self.base.sample(n)
        for layer in reversed(self.layers):
            z = layer.inverse(z)
        return z


BASES = {'gaussian': GaussianBase, 'mixture': MixtureBase}
