import torch
import torch.nn as nn


class AttentionPool(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.query = nn.Parameter(torch.randn(dim))

    def forward(self, x):
        w = (x @ self.query).softmax(1)
        return (x * w.unsqueeze(-1)).sum(1)


class Tagger(nn.Module):
    def __init__(self, front, bins, classes, width):
        super().__init__()
        self.front = front
        self.conv = nn.Sequential(nn.Conv1d(bins, width, 3, padding=1), nn.BatchNorm1d(width), nn.ReLU())
        self.rnn = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.pool = AttentionPool(2 * width)
        self.out = nn.Linear(2 * width, classes)

    def forward(self, wave):
        h = self.conv(self.front(wave)).transpose(1, 2)
        h0 = h.new_zeros(2, h.size(0), self.rnn.hidden_size)
        return self.out(self.pool(self.rnn(h, h0)[0]))
