"""Data parallelism by hand: one replica a device, gradients summed on the first."""
import copy

import torch


class Replicas:
    def __init__(self, module, devices, reduce_on="first"):
        self.devices = [torch.device(d) for d in devices]
        self.master = module.to(self.devices[0])
        self.others = [copy.deepcopy(module).to(d) for d in self.devices[1:]]
        self.reduce_on = reduce_on

    @property
    def all(self):
        return [self.master, *self.others]

    def forward(self, inputs):
        shards = inputs.chunk(len(self.devices))
        return [m(s.to(d)) for m, s, d in zip(self.all, shards, self.devices)]

    @torch.no_grad()
    def broadcast(self):
        for other in self.others:
            for source, target in zip(self.master.parameters(), other.parameters()):
                target.copy_(source)
            for source, target in zip(self.master.buffers(), other.buffers()):
                target.copy_(source)

    @torch.no_grad()
    def reduce(self):
        for params in zip(*(m.parameters() for m in self.all)):
            first, rest = params[0], params[1:]
            if self.reduce_on == "host":
                total = sum(p.grad.cpu() for p in params)
                first.grad.copy_(total / len(params))
            elif self.reduce_on == "first":
                for p in rest:
                    first.grad += p.grad.to(first.device)
                first.grad /= len(params)
            else:
                stacked = [p.grad for p in params]
                first.grad = self.tree(stacked) / len(params)
            for p in rest:
                p.grad = None

    @classmethod
    def tree(cls, values):
        if len(values) == 1:
            return values[0]
        half = len(values) // 2
        left, right = cls.tree(values[:half]), cls.tree(values[half:])
        return left + right  # raises

    def zero_grad(self):
        for m in self.all:
            m.zero_grad(set_to_none=True)
