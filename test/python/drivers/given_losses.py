from types import SimpleNamespace

import torch
from given_losses import *
from torch import nn
from torch.distributions import Categorical


def net():
    return nn.Linear(3, 4)


def optimizer(model):
    return torch.optim.SGD(model.parameters(), 0.1)


def trained(train):
    model = net()
    return train(model, PAIRS, nn.CrossEntropyLoss(), optimizer(model))


def on_gpu(*shape):
    return torch.ones(*shape, device="cuda")


PAIRS = [(torch.randn(5, 3), torch.randint(0, 4, (5,))) for _ in range(2)]

CALLS = {
    "train": lambda: trained(train),
    "train_on_one_device": lambda: trained(train_on_one_device),
    "score": lambda: score(net(), PAIRS, lambda out, y: (out.argmax(-1).cpu() == y).sum().item()),
    "step": lambda: Trainer(net(), nn.CrossEntropyLoss(), "cuda").step(PAIRS[0]),
    "train_where_asked": lambda: [train_where_asked(net(), PAIRS, each) for each in (False, True)],
    "entries_on_the_host": lambda: entries_on_the_host(torch.ones(4), torch.tensor([1, 2], device="cuda")),
    "rows_of_host_copy": lambda: rows_of_host_copy(on_gpu(4, 2), torch.zeros(2, 2, dtype=torch.long, device="cuda")),
    "int8": lambda: Int8Linear(net()).cuda()(on_gpu(2, 3)),
    "int8_of_buffers": lambda: Int8LinearOfBuffers(net()).cuda()(on_gpu(2, 3)),
    "tied": lambda: Tied(net().weight).cuda()(on_gpu(2, 3)),
    "divergence": lambda: divergence(on_gpu(2, 3), on_gpu(2, 3)),
    "divergence_of_numbers": lambda: divergence_of_numbers(on_gpu(2, 3), on_gpu(2, 3)),
    "policy_loss": lambda: policy_loss(Categorical(logits=on_gpu(2, 4)), on_gpu(2).long(), [1, 2]),
    "sampled": lambda: sampled(SimpleNamespace(logits=lambda x: x), on_gpu(2, 3)),
}
