import collections
import copy
import dataclasses
import functools
import itertools
import operator
import random
from collections import OrderedDict, deque, namedtuple
from dataclasses import dataclass, field
from typing import NamedTuple, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def gpu(*s):
    return torch.ones(*s, device="cuda:0")


def case_a1():
    q = deque(maxlen=3)
    q.append(torch.ones(2))
    return gpu(2) + q[0]  # raises


def case_a2():
    q = deque([torch.ones(2)])
    return gpu(2) + q.popleft()  # raises


def case_a4():
    xs = [torch.ones(2), torch.ones(2)]
    return gpu(2) + functools.reduce(lambda a, b: a + b, xs)  # raises


def case_a5():
    f = functools.partial(torch.ones, 2)
    return gpu(2) + f()  # raises


def case_a6():
    f = functools.partial(torch.add, torch.ones(2))
    return f(gpu(2))  # raises


def case_a7():
    P = namedtuple("P", ["x", "y"])
    p = P(torch.ones(2), gpu(2))
    return p.x + p.y  # raises


def case_a8():
    for a, b in itertools.product([torch.ones(2)], [gpu(2)]):
        return a + b  # raises


def case_a9():
    xs = list(itertools.chain([torch.ones(2)], [gpu(2)]))
    return xs[0] + xs[1]  # raises


def case_b1():
    d = {"a": torch.ones(2)}
    d = {k: v * 2 for k, v in d.items()}
    return gpu(2) + d["a"]  # raises


def case_b2():
    d = dict(a=torch.ones(2))
    d.update(b=gpu(2))
    return d["a"] + d["b"]  # raises


def case_b3():
    d = {"a": torch.ones(2)}
    x = d.pop("a")
    return gpu(2) + x  # raises


def case_b4():
    a, *rest = (torch.ones(2), gpu(2), gpu(2))
    return a + rest[0]  # raises


def case_b5():
    xs = sorted([torch.ones(2)], key=lambda t: t.sum())
    return gpu(2) + xs[0]  # raises


def case_b6():
    xs = list(map(lambda t: t.cpu(), [gpu(2)]))
    return gpu(2) + xs[0]  # raises


def case_b7():
    xs = list(filter(lambda t: t is not None, [torch.ones(2), None]))
    return gpu(2) + xs[0]  # raises


def case_b8():
    x = torch.ones(2)
    x = x if x.sum() > 0 else x * 2
    return gpu(2) + x  # raises


def case_b9():
    x = None
    if x is None:
        x = torch.ones(2)
    return gpu(2) + x  # raises


def case_c2():
    f = lambda t=torch.ones(2): t
    return gpu(2) + f()  # raises


def case_c3():
    x = copy.deepcopy(torch.ones(2))
    return gpu(2) + x  # raises


def case_c4():
    m = nn.Linear(2, 2)
    m2 = copy.deepcopy(m).cuda()
    return m2(gpu(1, 2)) + m(gpu(1, 2))  # raises


def case_c6():
    m = nn.Linear(2, 2).cuda()
    return sum(p.sum() for p in m.parameters()) + torch.ones(2)  # raises


def case_c7():
    m = nn.Sequential(nn.Linear(2, 2), nn.ReLU()).cuda()
    for name, p in m.named_parameters():
        p.data.copy_(torch.zeros_like(p))
        return p + torch.ones(2)  # raises


def case_c8():
    m = nn.ModuleDict({"a": nn.Linear(2, 2)}).cuda()
    return m["a"](torch.ones(1, 2))  # raises


def case_c9():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(2, 2)
        def forward(self, x):
            return self.l(x)  # raises
    return Net().cuda()(torch.ones(1, 2))


@dataclass
class Batch:
    x: torch.Tensor
    y: Optional[torch.Tensor] = None
    extra: dict = field(default_factory=dict)
    def to(self, device):
        return Batch(self.x.to(device), self.y)


def case_d1():
    b = Batch(torch.ones(2), torch.ones(2)).to("cuda")
    return b.x + torch.ones(2)  # raises


def case_d2():
    b = Batch(torch.ones(2), torch.ones(2))
    b = dataclasses.replace(b, x=b.x.cuda())
    return b.x + b.y  # raises


def case_d3():
    b = Batch(torch.ones(2))
    for f in dataclasses.fields(b):
        v = getattr(b, f.name)
        if torch.is_tensor(v):
            setattr(b, f.name, v.cuda())
    return b.x + torch.ones(2)  # raises


def case_d4():
    b = Batch(**{"x": torch.ones(2)})
    return b.x + gpu(2)  # raises


class P(NamedTuple):
    a: torch.Tensor
    b: torch.Tensor


def case_d5():
    p = P(torch.ones(2), gpu(2))
    return p.a + p.b  # raises


def case_d6():
    p = P(*[t.cuda() for t in P(torch.ones(2), torch.ones(2))])
    return p.a + torch.ones(2)  # raises


def case_d7():
    p = P(torch.ones(2), gpu(2))._replace(a=torch.zeros(2))
    return p.a + p.b  # raises


class Meter:
    def __init__(self):
        self.total = 0.0
        self.n = 0
    def update(self, v):
        self.total = self.total + v
        self.n += 1
    @property
    def avg(self):
        return self.total / self.n


def case_d8():
    m = Meter()
    m.update(torch.ones(2))
    return m.avg + gpu(2)  # raises


def case_d9():
    m = Meter()
    for _ in range(3):
        m.update(gpu(2))
    return m.avg + torch.ones(2)  # raises


def case_e1():
    x = torch.from_numpy(np.zeros(2)).float()
    return x + gpu(2)  # raises


def case_e2():
    x = torch.tensor([random.random() for _ in range(2)])
    return x + gpu(2)  # raises


def case_e4():
    return gpu(2).cpu().numpy() + gpu(2).numpy()  # raises


def case_e5():
    return np.asarray(gpu(2))  # raises


def case_e6():
    return np.mean([t.numpy() for t in [gpu(2)]])  # raises


def case_e7():
    x = gpu(2)
    return float(x[0]) + x.detach().numpy()  # raises


def case_e8():
    out = []
    for i in range(2):
        out.append(torch.ones(2))
    return torch.stack(out).mean(0) + gpu(2)  # raises


def case_e9():
    out = [None] * 2
    for i in range(2):
        out[i] = torch.ones(2)
    return torch.stack(out).mean(0) + gpu(2)  # raises


def case_f1():
    h = torch.zeros(1, 2)
    cell = nn.GRUCell(2, 2).cuda()
    return cell(gpu(1, 2), h)  # raises


def case_f2():
    lstm = nn.LSTM(2, 2).cuda()
    return lstm(gpu(1, 1, 2), (torch.zeros(1, 1, 2), torch.zeros(1, 1, 2)))  # raises


def case_f3():
    emb = nn.Embedding(4, 2).cuda()
    return emb(torch.tensor([1, 2]))  # raises


def case_f4():
    loss = nn.CrossEntropyLoss(weight=torch.ones(2))
    return loss(gpu(3, 2), torch.zeros(3, device="cuda:0").long())  # raises


def case_f5():
    return F.cross_entropy(gpu(3, 2), torch.zeros(3).long())  # raises


def case_f6():
    return nn.MSELoss()(gpu(2), torch.ones(2))  # raises


def case_f7():
    return F.one_hot(torch.zeros(2).long(), 2).float() @ gpu(2)  # raises


def case_f8():
    bn = nn.BatchNorm1d(2)
    return bn(gpu(3, 2))  # raises


def case_f9():
    att = nn.MultiheadAttention(2, 1).cuda()
    return att(gpu(1, 1, 2), torch.ones(1, 1, 2), gpu(1, 1, 2))  # raises


def case_g1():
    m = nn.Linear(2, 2)
    m.cuda()
    opt = torch.optim.SGD(m.parameters(), lr=.1)
    loss = (m(torch.ones(1, 2)) ** 2).sum()  # raises
    loss.backward()


def case_g2():
    x = gpu(2)
    mask = torch.zeros(2).bool()
    return x.masked_fill(mask, 0)  # raises


def case_g3():
    return gpu(2, 2).gather(0, torch.zeros(1, 2).long())  # raises


def case_g4():
    return torch.where(torch.ones(2) > 0, gpu(2), gpu(2))  # raises


def case_g5():
    return torch.ones(3)[torch.zeros(2, device="cuda:0").long()]  # raises


def case_g6():
    x = torch.ones(2)
    x.cuda()
    return x + gpu(2)  # raises


def case_g7():
    x = torch.ones(2)
    x += gpu(2)  # raises
    return x


def case_g8():
    return torch.cat([torch.ones(2), gpu(2)])  # raises


def case_g9():
    return torch.einsum("i,i->", torch.ones(2), gpu(2))  # raises


def case_h1():
    x = torch.ones(2).to("cuda:0")
    y = torch.ones(2).to("cuda:1")
    return x @ y  # raises


def case_h2():
    return torch.dot(torch.ones(2), gpu(2))  # raises


def case_h3():
    with torch.no_grad():
        return torch.ones(2) + gpu(2)  # raises


def case_h4():
    try:
        y = torch.ones(2)
    finally:
        pass
    return y + gpu(2)  # raises


def case_h5():
    x = torch.ones(2)
    match 3:
        case 3:
            x = gpu(2)
        case _:
            pass
    return x + torch.ones(2)  # raises


def case_h6():
    i = 0
    while i < 2:
        i += 1
        x = torch.ones(2)
    return x + gpu(2)  # raises


def case_h7():
    return (y := torch.ones(2)) + gpu(2)  # raises


def case_h8():
    xs = {torch.ones(2)}
    return xs.pop() + gpu(2)  # raises


def case_h9():
    x, y = zip(*[(torch.ones(2), gpu(2))])
    return torch.stack(x) + torch.stack(y)  # raises


def case_i1():
    return torch.stack([torch.ones(2) for _ in range(2)]).mean(0) + gpu(2)  # raises


def case_i2():
    table = torch.arange(4)
    return table[None, :] < torch.ones(3, device="cuda:0")[:, None]  # raises


def case_i3():
    x = gpu(4, 4)
    return x.tril() + torch.triu(torch.ones(4, 4))  # raises


def case_i4():
    x = gpu(4)
    idx = torch.randperm(4)
    return x[idx] + torch.ones(4)[idx]  # raises


def case_i6():
    return torch.ones(4)[..., :2] + gpu(2)  # raises


def case_i7():
    x = gpu(2)
    return x.new_tensor([1., 2.]) + torch.ones(2)  # raises


def case_i8():
    x = gpu(2)
    return torch.zeros_like(x, device="cpu") + x  # raises


def case_i9():
    x = gpu(2)
    return torch.ones(2).type_as(x) + torch.ones(2)  # raises
