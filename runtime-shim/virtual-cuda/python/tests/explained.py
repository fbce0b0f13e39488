"""Device errors without virtual GPUs: the meta device is one that every build has. The argument names a function."""

import io
import resource
import sys

import numpy
import torch
from torch import nn


def run(model, x, state):
    return model(x, (state, state))


def forgotten_state():
    state = torch.zeros(1, 2, 3, device="meta")
    x = torch.randn(4, 2, 3)
    return run(nn.LSTM(3, 3), x, state)


def moved_lengths():
    lengths = torch.tensor([4, 2])
    lengths = lengths.to("meta")
    return nn.utils.rnn.pack_padded_sequence(torch.ones(4, 2, 3), lengths)


def discarded_move():
    model = nn.LSTM(3, 3).to("meta")
    x = torch.ones(4, 2, 3)
    x.to("meta")
    return model(x)


def memory_of_numpy():
    model = nn.LSTM(3, 3).to("meta")
    return model(torch.from_numpy(numpy.ones((4, 2, 3), "float32")))


def many_tensors():
    kept = torch.zeros(1, 2, 3, device="meta")
    for _ in range(20000):
        torch.ones(3)
    return run(nn.LSTM(3, 3), torch.ones(4, 2, 3), kept)


def large_tensors():
    for _ in range(2000):
        torch.ones(250000)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def loaded_tensor():
    file = io.BytesIO()
    torch.save(torch.zeros(1, 2, 3), file)
    file.seek(0)
    state = torch.load(file)
    return run(nn.LSTM(3, 3).to("meta"), torch.ones(4, 2, 3, device="meta"), state)


class Leaves(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient.to("meta")


def backward_pass():
    x = torch.ones(3, requires_grad=True)
    y = Leaves.apply(x)
    y.sum().backward()


def caught():
    try:
        discarded_move()
    except RuntimeError:
        pass
    print(torch.cuda.is_available(), torch.ones(2).sum().item())


globals()[sys.argv[1]]()
