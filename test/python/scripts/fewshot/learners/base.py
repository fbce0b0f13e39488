from abc import ABC, abstractmethod

import torch
from torch import nn


class MetaLearner(nn.Module, ABC):
    def __init__(self, opt):
        super().__init__()
        self.opt = opt

    @abstractmethod
    def loss(self, episode):
        ...

    @abstractmethod
    def predict(self, episode):
        ...

    def accuracy(self, episode):
        return (self.predict(episode) == episode.query_y).float().mean().detach()

    def forward(self, episode):
        return self.loss(episode)
