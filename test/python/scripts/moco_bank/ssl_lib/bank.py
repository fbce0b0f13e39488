import torch
import torch.nn as nn
import torch.nn.functional as F


class Queue(nn.Module):
    """First in, first out keys as negatives."""

    def __init__(self, dim, size):
        super().__init__()
        self.register_buffer("keys", F.normalize(torch.randn(size, dim), dim=1))
        self.register_buffer("pointer", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def push(self, keys):
        start = int(self.pointer)
        rows = torch.arange(start, start + len(keys)) % len(self.keys)
        self.keys[rows] = keys  # raises
        self.pointer[0] = (start + len(keys)) % len(self.keys)


class InstanceBank:
    """One slot for each sample of the data set; lives in host memory."""

    def __init__(self, samples, dim, momentum=0.5):
        self.memory = F.normalize(torch.randn(samples, dim), dim=1)
        self.momentum = momentum

    def negatives(self, index, count, device):
        drawn = torch.randint(0, len(self.memory), (len(index), count))
        return self.memory[drawn].to(device)

    def positives(self, index, device):
        return self.memory[index.cpu()].to(device)

    @torch.no_grad()
    def update(self, index, features):
        old = self.memory[index]
        new = self.momentum * old + (1 - self.momentum) * features  # raises
        self.memory[index] = F.normalize(new, dim=1)
