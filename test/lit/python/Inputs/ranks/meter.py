"""Nobody says here what exchanges the tensors."""
import torch
import torch.distributed as dist


class Meter:
    def __init__(self):
        self.sum = 0.0
        self.count = 0

    def exchange(self):
        both = torch.tensor([self.sum, self.count])
        dist.all_reduce(both)
        self.sum, self.count = both.tolist()
