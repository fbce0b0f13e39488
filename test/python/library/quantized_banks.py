import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class VectorQuantizer(nn.Module):
    def __init__(self, num_codes, dim, beta=0.25):
        super().__init__()
        self.num_codes, self.beta = num_codes, beta
        self.embedding = nn.Embedding(num_codes, dim)

    def distances(self, flat):
        w = self.embedding.weight
        return flat.pow(2).sum(1, keepdim=True) + w.pow(2).sum(1) - 2 * flat @ w.t()

    def _one_hot(self, idx):
        enc = torch.zeros(idx.shape[0], self.num_codes)
        return enc.scatter_(1, idx.unsqueeze(1), 1)  # raises

    def perplexity(self, idx):
        probs = self._one_hot(idx).mean(0)
        return torch.exp(-(probs * (probs + 1e-10).log()).sum())

    def forward(self, z):
        flat = z.reshape(-1, z.shape[-1])
        idx = self.distances(flat).argmin(1)
        q = self.embedding(idx).view_as(z)
        loss = F.mse_loss(q.detach(), z) * self.beta + F.mse_loss(q, z.detach())
        return z + (q - z).detach(), idx.view(z.shape[:-1]), loss


class EMAVectorQuantizer(nn.Module):
    def __init__(self, num_codes, dim, decay=0.9):
        super().__init__()
        self.decay = decay
        self.register_buffer('codebook', torch.randn(num_codes, dim))
        self.register_buffer('cluster_size', torch.ones(num_codes))
        self.embed_avg = self.codebook.clone()

    def forward(self, x):
        idx = torch.cdist(x, self.codebook).argmin(1)
        return self.codebook[idx], idx

    @torch.no_grad()
    def update(self, x, idx):
        onehot = F.one_hot(idx, len(self.codebook)).type_as(x)
        self.cluster_size.lerp_(onehot.sum(0), 1 - self.decay)
        self.embed_avg.mul_(self.decay).add_(onehot.t() @ x, alpha=1 - self.decay)  # raises
        self.codebook.copy_(self.embed_avg / self.cluster_size.unsqueeze(1))


class ResidualVQ(nn.Module):
    def __init__(self, depth, num_codes, dim, dropout=False):
        super().__init__()
        self.layers = nn.ModuleList([VectorQuantizer(num_codes, dim) for _ in range(depth)])
        self.dropout = dropout

    def forward(self, x):
        n = len(self.layers)
        cutoff = torch.randint(1, n, (1,)).item() if self.dropout and self.training else n
        residual, out, all_idx, losses = x, 0., [], []
        for i, layer in enumerate(self.layers):
            if i >= cutoff:
                all_idx.append(torch.full(x.shape[:-1], -1, dtype=torch.long))
                continue
            q, idx, loss = layer(residual)
            residual, out = residual - q.detach(), out + q
            all_idx.append(idx)
            losses.append(loss)
        return out, torch.stack(all_idx, dim=-1), torch.stack(losses).sum()  # raises


class FSQ(nn.Module):
    def __init__(self, levels):
        super().__init__()
        self.register_buffer('levels', torch.tensor(levels), persistent=False)
        self.basis = torch.cumprod(torch.tensor([1] + levels[:-1]), dim=0)

    def forward(self, z):
        half = (self.levels - 1) / 2
        bounded = torch.tanh(z) * half
        return bounded + (bounded.round() - bounded).detach()

    def indices(self, codes):
        shifted = codes + torch.div(self.levels - 1, 2, rounding_mode='floor')
        return (shifted.long() * self.basis).sum(-1)  # raises


class HashCodebook(object):
    def __init__(self, dim, bits, seed=0):
        self.planes = torch.randn(dim, bits, generator=torch.Generator().manual_seed(seed))
        self.powers = 2 ** torch.arange(bits)
        if torch.cuda.is_available():
            self.planes = self.planes.cuda()

    def codes(self, x):
        bits = (x @ self.planes) > 0
        return (bits.long() * self.powers).sum(-1)  # raises


class MoCoQueue(nn.Module):
    def __init__(self, dim, size=16, T=0.07):
        super().__init__()
        self.T = T
        self.register_buffer('queue', F.normalize(torch.randn(dim, size), dim=0))
        self.register_buffer('ptr', torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def enqueue(self, keys):
        start = int(self.ptr)
        cols = torch.arange(start, start + len(keys)) % self.queue.shape[1]
        self.queue[:, cols] = keys.t()
        self.ptr[0] = (start + len(keys)) % self.queue.shape[1]

    def logits(self, q, k):
        pos = torch.einsum('nc,nc->n', q, k).unsqueeze(-1)
        return torch.cat([pos, q @ self.queue.clone()], dim=1) / self.T

    def forward(self, q, k):
        logits = self.logits(q, k)
        labels = torch.zeros(logits.shape[0], dtype=torch.long)
        self.enqueue(k)
        return F.cross_entropy(logits, labels)  # raises


class FeatureBank(nn.Module):
    def __init__(self, n, dim, classes, momentum=0.5):
        super().__init__()
        self.m, self.classes = momentum, classes
        stdv = 1. / math.sqrt(dim / 3)
        self.register_buffer('bank', torch.rand(n, dim).mul_(2 * stdv).add_(-stdv))
        self.labels = torch.full((n,), -1, dtype=torch.long)

    @torch.no_grad()
    def update(self, idx, feats, labels):
        old = self.bank.index_select(0, idx)
        self.bank.index_copy_(0, idx, F.normalize(old * self.m + feats * (1 - self.m), dim=1))
        self.labels[idx.cpu()] = labels.cpu()

    def vote(self, feats, k=3):
        nbr = (feats @ self.bank.t()).topk(k, dim=1)[1]
        near = self.labels[nbr]  # raises
        return near.mode(dim=1)[0]
