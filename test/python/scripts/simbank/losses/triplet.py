import torch
import torch.nn as nn


class BatchTriplet(nn.Module):
    def __init__(self, margin=0.3, mining='all'):
        super().__init__()
        self.margin = margin
        self.mine = getattr(self, 'mine_' + mining)

    def mine_all(self, distance, same):
        i, p = torch.nonzero(torch.triu(same.cpu(), diagonal=1), as_tuple=True)
        penalty = same.float() * distance.max()
        n = (distance + penalty)[i].argmin(dim=1)
        return distance[i, p], distance[i, n]

    def mine_hard(self, distance, same):
        n = distance.size(0)
        other = ~torch.eye(n, dtype=torch.bool)
        positive = (distance * (same & other)).max(dim=1).values  # raises
        negative = distance.masked_fill(same, float('inf')).min(dim=1).values
        return positive, negative

    def forward(self, z, labels):
        distance = (2 - 2 * z @ z.t()).clamp(min=1e-6).sqrt()
        same = labels[:, None] == labels[None, :]
        positive, negative = self.mine(distance, same)
        return (positive - negative + self.margin).clamp(min=0).mean()
