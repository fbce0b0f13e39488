from collections import namedtuple

import torch
import torch.nn.functional as F
from torch import nn

from .codebook import CODEBOOKS
from .nets import Decoder, Encoder

Output = namedtuple('Output', ['recon', 'codes', 'vq_loss'])


class EdgeLoss(nn.Module):
    kernel = torch.tensor([[[[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]]]])

    def edges(self, x):
        k = self.kernel.to(x.device)
        return F.conv2d(x, k) + F.conv2d(x, k.transpose(2, 3))

    def forward(self, a, b):
        return (self.edges(a) - self.edges(b)).abs().mean()  # raises


class VQPipeline(nn.Module):
    """Encoder and codebook on one device, decoder on another."""

    def __init__(self, first, second, codes, dim, codebook, skip):
        super().__init__()
        self.first, self.second, self.skip = first, second, skip
        self.encoder = Encoder(dim).to(first)
        self.codebook = CODEBOOKS[codebook](codes, dim).to(first)
        self.decoder = Decoder(dim).to(second)
        self.edge = EdgeLoss()

    def forward(self, x):
        z, shallow = self.encoder(x)
        quantized, codes, vq_loss = self.codebook(z)
        handed = quantized.to(self.second, non_blocking=True)
        if self.skip:
            recon = self.decoder(handed, shortcut=shallow)
        else:
            recon = self.decoder(handed)
        return Output(recon, codes, vq_loss)

    def objective(self, out, x, edges=False):
        loss = F.mse_loss(out.recon, x.to(out.recon.device)) + out.vq_loss.to(self.second)
        if edges:
            loss = loss + 0.05 * self.edge(out.recon, x)
        return loss
