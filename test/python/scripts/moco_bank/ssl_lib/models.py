import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

from ssl_lib.bank import Queue


def encoder(dim, out):
    return nn.Sequential(nn.Linear(dim, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, out))


class MoCo(nn.Module):
    def __init__(self, dim, out, queue, momentum, temperature, key_device=None):
        super().__init__()
        self.query = encoder(dim, out)
        self.key = copy.deepcopy(self.query)
        self.key.requires_grad_(False)
        self.queue = Queue(out, queue)
        self.momentum, self.temperature = momentum, temperature
        self.key_device = key_device

    def place(self, device):
        self.to(device)
        if self.key_device is not None:
            self.key.to(self.key_device)
        return self

    @torch.no_grad()
    def update_key(self):
        for slow, fast in zip(self.key.parameters(), self.query.parameters()):
            fresh = fast.detach().to(slow.device)
            slow.mul_(self.momentum).add_(fresh, alpha=1 - self.momentum)

    def forward(self, first, second):
        q = F.normalize(self.query(first), dim=1)
        with torch.no_grad():
            self.update_key()
            if self.key_device is not None:
                second = second.to(self.key_device)
            k = F.normalize(self.key(second), dim=1)
        same = (q * k.to(q.device)).sum(1, keepdim=True)
        other = q @ self.queue.keys.t().clone()
        logits = torch.cat([same, other], dim=1) / self.temperature
        labels = torch.zeros(len(q), dtype=torch.long, device=q.device)
        self.queue.push(k)
        return F.cross_entropy(logits, labels)


class SimCLR(nn.Module):
    def __init__(self, dim, out, temperature):
        super().__init__()
        self.query = encoder(dim, out)
        self.temperature = temperature

    def forward(self, first, second):
        z = F.normalize(self.query(torch.cat([first, second])), dim=1)
        n = len(first)
        logits = z @ z.t() / self.temperature
        logits = logits.masked_fill(torch.eye(2 * n, dtype=torch.bool, device="cuda"), -1e9)  # raises
        partner = torch.arange(2 * n).roll(n)
        return F.cross_entropy(logits, partner.to(z.device))


class InstanceDiscrimination(nn.Module):
    def __init__(self, dim, out, bank, temperature, negatives=6):
        super().__init__()
        self.query = encoder(dim, out)
        self.bank, self.temperature, self.negatives = bank, temperature, negatives

    def forward(self, x, index):
        z = F.normalize(self.query(x), dim=1)
        same = (z * self.bank.positives(index, z.device)).sum(1, keepdim=True)
        other = torch.einsum("bd,bnd->bn", z, self.bank.negatives(index, self.negatives, z.device))
        loss = -F.log_softmax(torch.cat([same, other], 1) / self.temperature, dim=1)[:, 0].mean()
        return loss, z.detach()
