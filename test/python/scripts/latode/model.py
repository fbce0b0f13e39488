import torch
import torch.nn as nn

from solvers import odeint


class Field(nn.Module):
    def __init__(self, dim, hidden, time_aware):
        super().__init__()
        self.time_aware = time_aware
        self.net = nn.Sequential(nn.Linear(dim + time_aware, hidden), nn.Tanh(), nn.Linear(hidden, dim))
        self.evaluations = 0

    def forward(self, t, z):
        self.evaluations += 1
        if self.time_aware:
            z = torch.cat([z, t.expand(len(z), 1)], 1)  # raises
        return self.net(z)


class Recogniser(nn.Module):
    """Reads the observations backwards; a gap leaves the state as it was."""

    def __init__(self, features, hidden, latent):
        super().__init__()
        self.cell = nn.GRUCell(features + 1, hidden)
        self.head = nn.Linear(hidden, 2 * latent)

    def forward(self, values, seen, times):
        h = values.new_zeros(len(values), self.cell.hidden_size)
        gaps = torch.diff(times, prepend=times[:1])
        for i in reversed(range(values.shape[1])):
            gap = gaps[i].expand(len(values), 1)
            new = self.cell(torch.cat([values[:, i], gap], 1), h)
            h = torch.where(seen[:, i, None], new, h)
        return self.head(h).chunk(2, 1)


class LatentODE(nn.Module):
    def __init__(self, features, config):
        super().__init__()
        self.options = config.ode
        self.recogniser = Recogniser(features, config.hidden, config.latent)
        self.field = Field(config.latent, config.hidden, config.ode.time_aware)
        self.decoder = nn.Sequential(nn.Linear(config.latent, config.hidden), nn.ELU(),
                                     nn.Linear(config.hidden, features))
        self.log_noise = nn.Parameter(torch.tensor(-1.0))

    @property
    def device(self):
        return self.log_noise.device

    def encode(self, values, seen, times):
        mean, log_std = self.recogniser(values, seen, times)
        return torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())

    def decode(self, z0, times):
        path = odeint(self.field, z0, times, self.options)
        return self.decoder(path).transpose(0, 1)

    def elbo(self, batch, beta):
        posterior = self.encode(batch['values'], batch['seen'], batch['times'])
        prior = torch.distributions.Normal(torch.zeros((), device=self.device), torch.ones((), device=self.device))
        made = self.decode(posterior.rsample(), batch['times'])
        likelihood = torch.distributions.Normal(made, self.log_noise.exp()).log_prob(batch['values']).sum(-1)
        likelihood = (likelihood * batch['seen']).sum(1)
        kl = torch.distributions.kl_divergence(posterior, prior).sum(1)
        return (likelihood - beta * kl).mean()
