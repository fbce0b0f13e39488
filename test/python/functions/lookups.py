import torch
import torch.nn as nn
from functools import reduce
import operator


def case_lookup_a():
    w = {k: torch.ones(2) for k in "ab"}
    return w["a"] + torch.ones(2).cuda()  # raises


def case_lookup_b():
    w = {"a": torch.ones(2), "b": torch.ones(2)}
    w = {k: v.cuda() if k == "a" else v for k, v in w.items()}
    return w["a"] + w["b"]  # raises


def case_lookup_c():
    parts = [torch.ones(2, device=f"cuda:{i}") for i in range(2)]
    return reduce(operator.add, parts)  # raises


def case_lookup_d():
    parts = [torch.ones(2), torch.ones(2).cuda()]
    return reduce(torch.add, parts)  # raises


def case_lookup_e():
    from collections import namedtuple
    B = namedtuple("B", "x y")
    b = B(torch.ones(2), torch.ones(2))
    b = b._replace(x=b.x.cuda())
    return b.x + b.y  # raises


def case_lookup_f():
    from collections import namedtuple
    B = namedtuple("B", "x y")
    b = B(torch.ones(2).cuda(), torch.ones(2))
    return b.x + b.y  # raises


from dataclasses import dataclass, fields, replace, asdict


@dataclass
class D:
    x: torch.Tensor
    y: torch.Tensor

    def to(self, device):
        return D(**{f.name: getattr(self, f.name).to(device) for f in fields(self)})


def case_lookup_g():
    d = D(torch.ones(2), torch.ones(2)).to("cuda")
    d2 = replace(d, y=torch.ones(2))
    (d.x + d.y).sum()
    return d2.x + d2.y  # raises


def case_lookup_h():
    @dataclass
    class D:
        x: torch.Tensor
        y: torch.Tensor
    d = D(torch.ones(2).cuda(), torch.ones(2))
    return d.x + d.y  # raises


class O:
    def __init__(self):
        self.a = torch.ones(2)
        self.b = [torch.ones(2)]

    def cuda(self):
        self.__dict__ = {k: v.cuda() if torch.is_tensor(v) else v for k, v in self.__dict__.items()}
        return self

    def cuda2(self):
        for k, v in self.__dict__.items():
            if torch.is_tensor(v):
                self.__dict__[k] = v.cuda()
        return self

    def cuda3(self):
        self.__dict__.update({k: v.cuda() for k, v in self.__dict__.items() if torch.is_tensor(v)})
        return self


def case_lookup_i():
    o = O().cuda()
    return o.a + o.b[0]  # raises


def case_lookup_j():
    o = O().cuda2()
    return o.a + o.b[0]  # raises


def case_lookup_k():
    o = O().cuda3()
    return o.a + o.b[0]  # raises


_CACHE = {}


def table(n):
    try:
        return _CACHE[n]
    except KeyError:
        _CACHE[n] = torch.arange(n)
        return _CACHE[n]


def case_lookup_l():
    return torch.ones(3).cuda() * table(3)  # raises


def pick(batch):
    try:
        return batch.weights
    except AttributeError:
        return torch.ones(3)


def case_lookup_m():
    class B:
        pass
    return torch.ones(3).cuda() * pick(B())  # raises


def number(x):
    try:
        return torch.as_tensor(x, device="cuda")
    except (TypeError, ValueError):
        return torch.zeros(3)


def case_lookup_n():
    return number([1.0]) + torch.ones(1, device="cuda")


def case_lookup_o():
    it = iter([torch.ones(2)])
    out = torch.ones(2, device="cuda")
    while True:
        try:
            x = next(it)
        except StopIteration:
            break
        out = out + x  # raises
    return out


class P(nn.Module):
    def __init__(self):
        super().__init__()
        self._w = None

    def w(self):
        try:
            return self.cached
        except AttributeError:
            self.cached = torch.ones(3)
            return self.cached

    def forward(self, x):
        return x * self.w()  # raises


def case_lookup_p():
    return P().cuda()(torch.ones(3, device="cuda"))
