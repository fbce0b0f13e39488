import torch
import torch.nn.functional as F
from torch import nn

from common.nets import class_means, embedding

from .base import MetaLearner


class Residual(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        return x + F.relu(self.fc(x))  # raises


class Learner(MetaLearner):
    def __init__(self, opt):
        super().__init__(opt)
        self.embed = embedding()
        depth = {'shallow': 0, 'deep': 2}[opt.relation]
        self.blocks = [Residual(16) for _ in range(depth)]
        self.judge = nn.Linear(16, 1)
        self.register_buffer('bias', torch.zeros(1), persistent=False)

    def logits(self, episode):
        means = class_means(self.embed(episode.support), episode.support_y, episode.way)
        z = self.embed(episode.query)
        pairs = torch.cat([z[:, None].expand(-1, episode.way, -1), means[None].expand(len(z), -1, -1)], dim=-1)
        for block in self.blocks:
            pairs = block(pairs)
        return self.judge(pairs).squeeze(-1) + self.bias

    def loss(self, episode):
        goal = (episode.query_y[:, None] == torch.arange(episode.way, device=episode.query_y.device)).float()
        return F.mse_loss(self.logits(episode).sigmoid(), goal)

    @torch.no_grad()
    def predict(self, episode):
        return self.logits(episode).argmax(1)
