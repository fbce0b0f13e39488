import torch
import torch.nn as nn

from registry import ENCODERS, SAMPLERS
from sampling import nearest, take


@ENCODERS.register('setnet')
class SetNet(nn.Module):
    """One set abstraction and the way back to all points."""

    def __init__(self, width, sampler, neighbours=8):
        super().__init__()
        self.sampler = SAMPLERS.build(sampler)
        self.neighbours = neighbours
        self.local = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, width))
        self.wide = nn.Sequential(nn.Linear(width + 3, width), nn.ReLU(), nn.Linear(width, width))
        self.out_features = 2 * width

    def forward(self, xyz):
        centres = take(xyz, self.sampler(xyz))
        groups = take(xyz, nearest(centres, xyz, self.neighbours))
        relative = groups - centres.unsqueeze(2)
        local = self.local(torch.cat([groups, relative], -1)).max(2).values
        whole = self.wide(torch.cat([local, centres], -1)).max(1).values
        weight = 1 / (torch.cdist(xyz, centres) + 1e-3)
        weight = weight / weight.sum(-1, keepdim=True)
        return torch.cat([weight @ local, whole.unsqueeze(1).expand(-1, xyz.shape[1], -1)], -1), whole


class PartHead(nn.Module):
    def __init__(self, encoder, parts):
        super().__init__()
        self.encoder = encoder
        self.classify = nn.Linear(encoder.out_features, parts)

    def forward(self, xyz):
        features, _ = self.encoder(xyz)
        return self.classify(features)
