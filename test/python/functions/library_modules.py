import torch
import torch.nn as nn


class Lin(nn.Linear):
    def __init__(self, a, b):
        super().__init__(a, b)
        self.scale = torch.ones(b)

    def forward(self, x):
        return super().forward(x) * self.scale  # raises


class Lin2(nn.Linear):
    def __init__(self, a, b):
        super().__init__(a, b, bias=False)


class Seq(nn.Sequential):
    def __init__(self, a):
        super().__init__(nn.Linear(a, a), nn.ReLU())


class Seq2(nn.Sequential):
    def __init__(self, a):
        layers = [nn.Linear(a, a), nn.ReLU()]
        super().__init__(*layers)


class Seq3(nn.Sequential):
    def forward(self, x):
        for layer in self:
            x = layer(x)
        return x


class Lst(nn.ModuleList):
    def __init__(self, n):
        super().__init__([nn.Linear(2, 2) for _ in range(n)])

    def forward(self, x):
        for layer in self:
            x = layer(x)
        return x


def case_lin():
    return Lin(2, 2).cuda()(torch.ones(1, 2).cuda())


def case_lin2():
    return Lin2(2, 2).cuda()(torch.ones(1, 2))  # raises


def case_lin2_ok():
    return Lin2(2, 2).cuda()(torch.ones(1, 2).cuda())


def case_lin2_w():
    return Lin2(2, 2).cuda().weight + torch.ones(2)  # raises


def case_seq():
    return Seq(2).cuda()(torch.ones(1, 2))  # raises


def case_seq_ok():
    return Seq(2).cuda()(torch.ones(1, 2).cuda()).cpu().numpy


def case_seq_out():
    return Seq(2).cuda()(torch.ones(1, 2).cuda()) + torch.ones(2)  # raises


def case_seq2():
    return Seq2(2).cuda()(torch.ones(1, 2).cuda()) + torch.ones(2)  # raises


def case_seq3():
    return Seq3(nn.Linear(2, 2)).cuda()(torch.ones(1, 2).cuda()) + torch.ones(2)  # raises


def case_lst():
    return Lst(2).cuda()(torch.ones(1, 2).cuda()) + torch.ones(2)  # raises


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Seq(2), Lin2(2, 2)

    def forward(self, x):
        return self.b(self.a(x))


def case_net():
    return Net().cuda()(torch.ones(1, 2).cuda()) + torch.ones(2)  # raises
