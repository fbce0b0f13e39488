import torch
import torch.nn.functional as F
from torch import nn

from common.nets import FunctionalMLP

from .base import MetaLearner


class Learner(MetaLearner):
    def __init__(self, opt):
        super().__init__(opt)
        self.net = FunctionalMLP(6, 16, opt.way)
        if opt.inner_lr == 'vector':
            self.rates = [torch.full(w.shape[:1], 0.1) for w in self.net.weights]
        elif opt.inner_lr == 'scalar':
            self.rates = [torch.tensor(0.1) for _ in self.net.weights]
        else:
            self.rates = [0.1] * len(self.net.weights)

    def rate_like(self, i, w):
        rate = self.rates[i]
        return rate.view(-1, *([1] * (w.dim() - 1))) if torch.is_tensor(rate) and rate.dim() else rate

    def adapt(self, episode, create_graph):
        weights = list(self.net.weights)
        for _ in range(self.opt.inner_steps):
            inner = F.cross_entropy(self.net(episode.support, weights), episode.support_y)
            grads = torch.autograd.grad(inner, weights, create_graph=create_graph)
            updated = []
            for i, (w, g) in enumerate(zip(weights, grads)):
                updated.append(w - self.rate_like(i, w) * g)  # raises
            weights = updated
        return weights

    def loss(self, episode):
        weights = self.adapt(episode, create_graph=not self.opt.first_order)
        return F.cross_entropy(self.net(episode.query, weights), episode.query_y)

    def predict(self, episode):
        return self.net(episode.query, self.adapt(episode, False)).argmax(1)


class AnilLearner(Learner):
    """Adapts the last layer only."""

    def adapt(self, episode, create_graph):
        body, head = list(self.net.weights)[:-2], list(self.net.weights)[-2:]
        for _ in range(self.opt.inner_steps):
            inner = F.cross_entropy(self.net(episode.support, body + head), episode.support_y)
            head = [w - 0.1 * g for w, g in zip(head, torch.autograd.grad(inner, head, create_graph=create_graph))]
        return body + head
