"""Losses that callers pass, operands that are brought to the host for the others, and ways on which nothing is moved."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical, Normal, kl_divergence


def train(model, loader, criterion, optimizer):
    model.cuda()
    for x, y in loader:
        loss = criterion(model(x.cuda()), y)  # raises
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def train_on_one_device(model, loader, criterion, optimizer):
    model.cuda()
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def score(model, loader, measure):
    """what is no loss may read its second argument on the host"""
    model.cuda()
    return sum(measure(model(x.cuda()), y) for x, y in loader)


class Trainer:
    def __init__(self, model, criterion, device):
        self.model = model.to(device)
        self.criterion = criterion
        self.device = device

    def step(self, batch):
        x, y = batch
        loss = self.criterion(self.model(x.to(self.device)), y)  # raises
        loss.backward()
        return loss.item()


def train_where_asked(model, loader, use_cuda):
    weight = torch.ones(4)
    if use_cuda:
        model, weight = model.cuda(), weight.cuda()
    for x, y in loader:
        if use_cuda:
            x, y = x.cuda(), y.cuda()
        F.cross_entropy(model(x), y, weight).backward()


def entries_on_the_host(table, index):
    return table.gather(-1, index.cpu()).to(index.device)


def rows_of_host_copy(table, index):
    return table.cpu()[index[:, 0]]  # raises


class Int8Linear(nn.Module):
    def __init__(self, linear: nn.Linear):
        super().__init__()
        weight = linear.weight.data
        scale = weight.abs().amax(1, keepdim=True) / 127
        self.register_buffer("whole", (weight / scale).round())
        self.scale = scale
        self.bias = linear.bias

    def forward(self, x):
        return F.linear(x, self.whole * self.scale, self.bias)  # raises


class Int8LinearOfBuffers(nn.Module):
    def __init__(self, linear: nn.Linear):
        super().__init__()
        weight = linear.weight.data
        scale = weight.abs().amax(1, keepdim=True) / 127
        self.register_buffer("whole", (weight / scale).round())
        self.register_buffer("scale", scale)
        self.bias = linear.bias

    def forward(self, x):
        return F.linear(x, self.whole * self.scale, self.bias)


class Tied(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight
        self.bias = nn.Parameter(torch.zeros(4))

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


def divergence(mean, log_scale):
    return kl_divergence(Normal(mean, log_scale.exp()), Normal(torch.zeros(3), torch.ones(3))).sum()  # raises


def divergence_of_numbers(mean, log_scale):
    ours = Normal(mean, log_scale.exp())
    return kl_divergence(ours, Normal(torch.tensor(0.0), torch.tensor(1.0))).sum()


def policy_loss(dist, actions, rewards):
    returns = torch.tensor([float(each) for each in rewards])
    return -(dist.log_prob(actions) * returns).sum()  # raises


def sampled(head, x):
    return Categorical(logits=head.logits(x)).sample() + x.argmax(-1)
