import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class ProxyNCA(nn.Module):
    def __init__(self, classes, dim, scale=8.0):
        super().__init__()
        self.proxies = nn.Parameter(torch.randn(classes, dim))
        self.scale = scale

    def forward(self, z, labels):
        proxies = F.normalize(self.proxies, dim=1)
        logits = F.linear(z, proxies)  # raises
        return F.cross_entropy(logits * self.scale, labels)


class ArcFace(nn.Module):
    def __init__(self, classes, dim, s=8.0, m=0.2):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, dim))
        nn.init.xavier_uniform_(self.weight)
        self.s = s
        self.cos_m, self.sin_m = (torch.tensor(f(m)) for f in (math.cos, math.sin))

    def forward(self, z, labels):
        cosine = F.linear(z, F.normalize(self.weight)).clamp(-1 + 1e-6, 1 - 1e-6)
        sine = (1 - cosine ** 2).sqrt()
        shifted = cosine * self.cos_m - sine * self.sin_m
        onehot = torch.zeros_like(cosine).scatter_(1, labels.view(-1, 1), 1)
        return F.cross_entropy(self.s * torch.where(onehot > 0, shifted, cosine), labels)
