import torch
import torch.nn as nn
import torch.nn.functional as F


class NTXent(nn.Module):
    def __init__(self, batch_size, temperature=0.2, mask_self='diag'):
        super().__init__()
        self.batch_size = batch_size
        self.temperature = torch.tensor(temperature)
        self.mask_self = mask_self
        self.off = torch.eye(2 * batch_size, dtype=torch.bool)

    def forward(self, za, zb):
        z = torch.cat([za, zb])
        n = za.size(0)
        similarity = z @ z.t() / self.temperature
        if self.mask_self == 'diag':
            similarity = similarity.clone()
            similarity.fill_diagonal_(float('-inf'))
        else:
            similarity = similarity.masked_fill(self.off, float('-inf'))  # raises
        target = torch.cat([torch.arange(n, 2 * n, device=z.device), torch.arange(n, device=z.device)])
        return F.cross_entropy(similarity, target)
