import torch.nn as nn


class Denoiser(nn.Module):
    def __init__(self, dim=6, hidden=12):
        super().__init__()
        self.time = nn.Embedding(10, hidden)
        self.inp = nn.Linear(dim, hidden)
        self.out = nn.Linear(hidden, dim)
        for p in self.time.parameters():
            p.requires_grad_(False)

    def forward(self, x, t):
        return self.out((self.inp(x) + self.time(t)).relu())
