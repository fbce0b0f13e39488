import copy
from collections import OrderedDict
from functools import cached_property
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def case_sum_start():
    parts = [torch.ones(2).cuda(), torch.ones(2).cuda()]
    return sum((p for p in parts), torch.ones(2))  # raises


def case_sum_start2():
    parts = [torch.ones(2).cuda(), torch.ones(2).cuda()]
    return sum((p for p in parts), torch.ones(2).cuda())


def case_ptv():
    m = nn.Linear(2, 2).cuda()
    return parameters_to_vector(m.parameters()) + torch.ones(6)  # raises


class Gp:
    def __init__(self, x, y):
        self.x, self.y = x, y

    @cached_property
    def factor(self):
        return torch.linalg.cholesky(self.x @ self.x.t() + torch.eye(2, device=self.x.device))

    def predict(self):
        return torch.cholesky_solve(self.y[:, None], self.factor)  # raises


def case_gp():
    return Gp(torch.ones(2, 2).cuda(), torch.ones(2)).predict()


class Fm(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2)

    def forward(self, x, params=None):
        params = params or OrderedDict(self.named_parameters())
        return F.linear(x, params["first.weight"], params["first.bias"])  # raises


def case_fm_ok():
    m = Fm().cuda()
    return m(torch.ones(1, 2).cuda())


def case_fm_bad():
    m = Fm().cuda()
    params = OrderedDict((k, v.cpu()) for k, v in m.named_parameters())
    return m(torch.ones(1, 2).cuda(), params)


class Table:
    def __init__(self, store="cpu"):
        self.store, self.vectors = torch.device(store), {}

    def add(self, name, vector):
        vector = vector.detach().to(self.store)
        old = self.vectors.get(name)
        self.vectors[name] = vector if old is None else (old + vector) / 2

    def lookup(self, names):
        return torch.stack([self.vectors[name] for name in names])

    def nearest(self, query):
        names = sorted(self.vectors)
        return F.cosine_similarity(query[None], self.lookup(names), dim=-1)  # raises


def case_table():
    t = Table()
    for n in ("a", "b"):
        t.add(n, torch.ones(3).cuda())
    return t.nearest(torch.ones(3).cuda())


class Running:
    def __init__(self):
        self.memory = {}

    def observe(self, protos, keep_on=None):
        for way, proto in enumerate(protos):
            if way in self.memory:
                proto = self.memory[way].to(proto).lerp(proto, 0.5)
            self.memory[way] = proto if keep_on is None else proto.to(keep_on)

    def classify(self):
        return torch.stack([self.memory[way] for way in sorted(self.memory)])

    def classify2(self, q):
        return q @ torch.stack([self.memory[way] for way in sorted(self.memory)]).t()  # raises


def case_running():
    r = Running()
    r.observe(torch.ones(3, 2).cuda())
    return r.classify() + torch.ones(3, 2).cuda()


def case_running2():
    r = Running()
    r.observe(torch.ones(3, 2).cuda(), "cpu")
    return r.classify2(torch.ones(1, 2).cuda())


class Ex(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(2, 4), nn.GELU(), nn.Linear(4, 2))


class Moe(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.experts = nn.ModuleList([Ex() for _ in range(n)])

    def spread(self, devices):
        for i, e in enumerate(self.experts):
            e.to(devices[i % len(devices)])
        return self

    def call(self, e, x):
        return e(x)  # raises

    def forward(self, x):
        for e in self.experts:
            x = self.call(e, x)
        return x


def case_moe():
    m = Moe().spread(["cuda:0", "cuda:1"])
    return m(torch.ones(1, 2, device="cuda:0"))
