import torch
import torch.nn.functional as F
from torch import nn


class Codebook(nn.Module):
    def __init__(self, codes, dim):
        super().__init__()
        self.codes, self.dim = codes, dim
        self.embedding = nn.Embedding(codes, dim)
        self.embedding.weight.data.uniform_(-1 / codes, 1 / codes)

    def nearest(self, flat):
        w = self.embedding.weight
        distance = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ w.t() + w.pow(2).sum(1)
        return distance.argmin(dim=1)

    def after_assignment(self, flat, codes):
        pass

    def commitment(self, flat, quantized):
        return F.mse_loss(flat, quantized.detach()) * 0.25 + F.mse_loss(quantized, flat.detach())

    def forward(self, z):
        flat = z.permute(0, 2, 3, 1).reshape(-1, self.dim)
        codes = self.nearest(flat)
        quantized = self.embedding(codes)
        loss = self.commitment(flat, quantized)
        if self.training:
            self.after_assignment(flat.detach(), codes)
        quantized = flat + (quantized - flat).detach()
        b, _, h, w = z.shape
        return quantized.view(b, h, w, -1).permute(0, 3, 1, 2), codes.view(b, h, w), loss


class EMACodebook(Codebook):
    def __init__(self, codes, dim, decay=0.9):
        super().__init__(codes, dim)
        self.embedding.weight.requires_grad_(False)
        self.decay = decay
        self.register_buffer('cluster_size', torch.ones(codes))
        self.embed_sum = self.embedding.weight.data.clone()

    def commitment(self, flat, quantized):
        return F.mse_loss(flat, quantized.detach())

    @torch.no_grad()
    def after_assignment(self, flat, codes):
        onehot = F.one_hot(codes, self.codes).type_as(flat)
        self.cluster_size.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
        self.embed_sum.mul_(self.decay).add_(onehot.t() @ flat, alpha=1 - self.decay)  # raises
        self.embedding.weight.data.copy_(self.embed_sum / (self.cluster_size[:, None] + 1e-5))


class RestartCodebook(Codebook):
    """Codes that nobody uses start anew at some input."""

    @torch.no_grad()
    def after_assignment(self, flat, codes):
        used = torch.zeros(self.codes, dtype=torch.bool)
        used[codes.unique().cpu()] = True
        dead = (~used).nonzero().flatten()
        source = torch.randint(len(flat), (len(dead),))
        self.embedding.weight.data[dead] = flat[source]


CODEBOOKS = {'gradient': Codebook, 'ema': EMACodebook, 'restart': RestartCodebook}
