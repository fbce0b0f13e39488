import torch
import torch.nn as nn
import torch.nn.functional as F


class Standardizer:
    def __init__(self):
        self.mean = self.std = None

    def fit(self, x):
        self.mean, self.std = x.mean(0), x.std(0).clamp(min=1e-4)
        return self

    def __call__(self, x):
        return (x - self.mean.to(x.device)) / self.std.to(x.device)


class MeanVarianceNet(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        sizes = (features, *hidden)
        self.body = nn.Sequential(*[m for a, b in zip(sizes[:-1], sizes[1:]) for m in (nn.Linear(a, b), nn.Tanh())])
        self.mean, self.logvar = nn.Linear(sizes[-1], 1), nn.Linear(sizes[-1], 1)
        self.max_logvar = nn.Parameter(torch.full((1,), 0.5))
        self.min_logvar = nn.Parameter(torch.full((1,), -4.0))

    def forward(self, x):
        h = self.body(x)
        logvar = self.max_logvar - F.softplus(self.max_logvar - self.logvar(h))
        return self.mean(h), self.min_logvar + F.softplus(logvar - self.min_logvar)


class SWAG:
    """Moments of the parameters, kept on the host."""

    def __init__(self, model, rank):
        self.n, self.rank = 0, rank
        flat = nn.utils.parameters_to_vector(model.parameters()).detach().cpu()
        self.mean, self.sq, self.cols = torch.zeros_like(flat), torch.zeros_like(flat), []

    @torch.no_grad()
    def collect(self, model):
        flat = nn.utils.parameters_to_vector(model.parameters()).cpu()
        self.mean = (self.mean * self.n + flat) / (self.n + 1)
        self.sq = (self.sq * self.n + flat ** 2) / (self.n + 1)
        self.cols = (self.cols + [flat - self.mean])[-self.rank:]
        self.n += 1

    @torch.no_grad()
    def sample_into(self, model):
        var = (self.sq - self.mean ** 2).clamp(min=1e-8)
        flat = self.mean + var.sqrt() * torch.randn(self.mean.shape) * 0.5 ** 0.5
        if len(self.cols) > 1:
            dev = torch.stack(self.cols, 1)
            flat = flat + dev @ torch.randn(dev.size(1)) / (2 * (dev.size(1) - 1)) ** 0.5
        device = next(model.parameters()).device
        nn.utils.vector_to_parameters(flat.to(device), model.parameters())


class Member:
    def __init__(self, settings, device, seed):
        torch.manual_seed(seed)
        self.device = device
        self.net = MeanVarianceNet(settings.features, settings.hidden).to(device)
        self.optimizer = torch.optim.Adam(self.net.parameters(), 1e-2)
        self.swag = SWAG(self.net, settings.swag_rank)

    def train_on(self, x, y):
        rows = torch.randint(len(x), (len(x),))
        x, y = x[rows].to(self.device), y[rows].to(self.device)
        mean, logvar = self.net(x)
        loss = ((mean - y) ** 2 * torch.exp(-logvar) + logvar).mean()
        loss = loss + 0.01 * (self.net.max_logvar - self.net.min_logvar).sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.swag.collect(self.net)
        return loss.detach()
