import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.fc = nn.Linear(4, dim)

    def forward(self, x):
        return F.normalize(self.fc(F.relu(self.conv(x)).mean((2, 3))), dim=1)


class Queue:
    """First in, first out keys of the momentum encoder."""

    def __init__(self, dim, size, device):
        self.keys = F.normalize(torch.randn(dim, size, device=device), dim=0)
        self.owner = torch.full((size,), -1, device=device)
        self.ptr = 0

    @torch.no_grad()
    def push(self, keys, index):
        n = keys.size(0)
        rows = (torch.arange(n, device=keys.device) + self.ptr) % self.keys.size(1)
        self.keys[:, rows] = keys.t()
        self.owner[rows] = index
        self.ptr = (self.ptr + n) % self.keys.size(1)

    def state_dict(self):
        return {"keys": self.keys, "owner": self.owner, "ptr": self.ptr}

    def load_state_dict(self, state):
        self.keys, self.owner, self.ptr = state["keys"], state["owner"].to(self.keys.device), state["ptr"]


class MoCo(nn.Module):
    def __init__(self, opt):
        super().__init__()
        self.encoder_q = Encoder(opt.dim)
        self.encoder_k = copy.deepcopy(self.encoder_q).requires_grad_(False)
        self.m, self.T = opt.momentum, opt.temperature

    @torch.no_grad()
    def momentum_update(self):
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            k.mul_(self.m).add_(q.detach(), alpha=1 - self.m)

    @torch.no_grad()
    def encode_key(self, im_k):
        shuffle = torch.randperm(im_k.size(0)).to(im_k.device)
        k = self.encoder_k(im_k[shuffle])
        return k[shuffle.argsort()]

    def forward(self, im_q, im_k, index, queue):
        q = self.encoder_q(im_q)
        self.momentum_update()
        k = self.encode_key(im_k)
        l_pos = torch.einsum("nc,nc->n", q, k).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", q, queue.keys.clone())  # raises
        l_neg = l_neg.masked_fill(queue.owner[None] == index[:, None], float("-inf"))
        logits = torch.cat([l_pos, l_neg], dim=1) / self.T
        labels = torch.zeros(logits.shape[0], dtype=torch.long).to(logits.device)
        queue.push(k, index)
        return F.cross_entropy(logits, labels)
