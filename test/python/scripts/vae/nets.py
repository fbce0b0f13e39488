import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self, n, z=3):
        super(VAE, self).__init__()
        self.n = n
        self.fc1 = nn.Linear(n, 10)
        self.fc21, self.fc22 = nn.Linear(10, z), nn.Linear(10, z)
        self.fc3, self.fc4 = nn.Linear(z, 10), nn.Linear(10, n)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        if std.is_cuda:
            eps = torch.randn(std.size()).cuda()
        else:
            eps = torch.randn(std.size())
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, self.n))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def save_grid(t, path):
    np.save(path, t.numpy().transpose(0, 2, 3, 1))
