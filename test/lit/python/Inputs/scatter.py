import torch
from torch_scatter import scatter, scatter_add, scatter_max


def degree(x, index):
    x = x.to("cuda")
    return scatter_add(torch.ones(index.size(0)), index.to("cuda"), dim=0)


def best(x, index):
    x = x.to("cuda")
    m, arg = scatter_max(x, index.to(x.device), dim=0)
    return m + torch.ones(3)


def fine(x, index):
    x = x.cuda()
    m, arg = scatter_max(x, index.to(x.device), dim=0)
    return scatter(m, index.cuda(), reduce="mean") + m
