"""Serving code in small."""
import math
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import accumulate, chain, islice, zip_longest
from typing import Dict, List, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

D = torch.device("cuda:0")


def R(*s):
    return torch.rand(*s, device=D)


@dataclass
class Params:
    temperature: float = 1.0
    stop: List[int] = field(default_factory=list)
    seed: Optional[int] = None
    bias: Dict[int, float] = field(default_factory=dict)


class Steps(list):
    @classmethod
    def of(cls, p):
        made = cls()
        made.append(lambda x: x * 2)
        if p.bias:
            made.append(Bias(p.bias, 4))
        return made

    def __call__(self, x):
        for each in self:
            x = each(x)
        return x


class Bias:
    def __init__(self, bias, n):
        self.bias = torch.zeros(n)
        self.bias[list(bias)] = torch.tensor(list(bias.values()))

    def __call__(self, x):
        return x.add(self.bias)  # raises


def case_list_class():
    return Steps.of(Params(bias={1: 2.0}))(R(2, 4))


def case_list_class_no_bias():
    return Steps.of(Params())(R(2, 4))


class Cache:
    def __init__(self):
        self.k: List[torch.Tensor] = []

    def update(self, layer, k):
        if layer == len(self.k):
            self.k.append(k)
        else:
            self.k[layer] = torch.cat([self.k[layer], k], dim=-2)  # raises
        return self.k[layer]


def case_or_factory():
    def run(x, cache=None, factory=Cache):
        cache = cache or factory()
        return cache.update(0, x)
    c = Cache()
    c.k = [torch.zeros(1, 2)]
    return run(R(1, 2), c)


class Engine:
    def __init__(self, sampler=lambda p: Sampler(p), cache=Cache):
        self.sampler_factory, self.cache_factory = sampler, cache
        self.net = nn.Linear(4, 4).to(D)

    def run(self, x, params, where=None):
        x = x.to(where or self.net.weight.device)
        sampler = self.sampler_factory(params)
        return sampler(self.net(x))


class Sampler:
    def __init__(self, p, device="cuda"):
        self.p, self.generator = p, None
        if p.seed is not None:
            self.generator = torch.Generator(device=device).manual_seed(p.seed)

    def __call__(self, x):
        if self.p.temperature == 0:
            return x.argmax(-1)
        return torch.multinomial(x.softmax(-1), 1, generator=self.generator)  # raises


def case_sampler_on_host():
    return Engine(sampler=lambda p: Sampler(p, "cpu")).run(torch.rand(2, 4), Params(seed=1))


def case_sampler():
    return Engine().run(torch.rand(2, 4), Params(seed=1))


class Greedy(Sampler):
    def __call__(self, x):
        return super().__call__(x.cpu()) + R(1, 1).long()  # raises


def case_super_call():
    return Engine(sampler=lambda p: Greedy(p, "cpu")).run(torch.rand(2, 4), Params(seed=1))


def case_generate():
    tokens = torch.tensor([[1, 2]])
    net = nn.Embedding(8, 8).to(D)
    step = tokens
    for _ in range(3):
        chosen = net(step.to(D))[:, -1].argmax(-1, keepdim=True)
        step, tokens = chosen, torch.cat([tokens, chosen], dim=1)  # raises
    return tokens


def multi_apply(func, *args, **kwargs):
    return tuple(map(list, zip(*map(partial(func, **kwargs) if kwargs else func, *args))))


class Head:
    def __init__(self):
        self.w = torch.ones(2)

    def single(self, x, s):
        return x * s, x * self.w  # raises

    def __call__(self, feats):
        a, b = multi_apply(self.single, feats, [1.0, 2.0])
        return torch.cat(a), b


def case_multi_apply():
    return Head()([R(2), R(2)])


def case_multi_apply_result():
    a, b = multi_apply(lambda x, y: (x, y), [torch.ones(2), torch.ones(2)], [R(2), R(2)])
    return a[0] + b[0]  # raises


def case_map_two():
    return [x for x in map(lambda a, b: a + b, [R(2)], [torch.ones(2)])]  # raises


def case_defaultdict_cat():
    store = defaultdict(list)
    for _ in range(3):
        store["a"].append(torch.ones(2))
        store["b"].append(R(2))
    a, b = [torch.cat(store[k]) for k in ("a", "b")]
    return a * b  # raises


def case_state_values():
    m = nn.Linear(2, 2).to(D)
    saved = {name: v.detach().cpu() for name, v in m.state_dict().items()}
    return [(value - saved[name]).abs().max() for name, value in m.state_dict().items()]  # raises


class Ema:
    def __init__(self, model, decay=0.9):
        self.decay, self.values = decay, {}
        for name, p in model.named_parameters():
            self.values[name] = p.detach().cpu().clone()

    def update(self, model):
        for name, p in model.named_parameters():
            self.values[name].mul_(self.decay).add_(p.detach(), alpha=1 - self.decay)  # raises


def case_ema_by_name():
    m = nn.Linear(2, 2).to(D)
    Ema(m).update(m)


class Momentum:
    def __init__(self, model):
        self.model, self.buffers = model, {}

    def step(self):
        for name, p in self.model.named_parameters():
            old = self.buffers.get(name, torch.zeros(p.shape))
            self.buffers[name] = 0.9 * old + p.grad  # raises


def case_momentum_by_name():
    m = nn.Linear(2, 2).to(D)
    m(R(2, 2)).sum().backward()
    Momentum(m).step()


def case_grad_norm():
    a, b = nn.Linear(2, 2).to("cuda:0"), nn.Linear(2, 2).to("cuda:1")
    b(a(R(2, 2)).to("cuda:1")).sum().backward()
    grads = [p.grad for m in (a, b) for p in m.parameters()]
    return sum(g.pow(2).sum().view(1) for g in grads)  # raises


def case_grad_norm_stack():
    a, b = nn.Linear(2, 2).to("cuda:0"), nn.Linear(2, 2).to("cuda:1")
    net = nn.Sequential(a, b)
    b(a(R(2, 2)).to("cuda:1")).sum().backward()
    norms = [p.grad.norm() for p in net.parameters()]
    return torch.stack(norms)  # raises


class Normalizer:
    def __init__(self, values):
        self.mean, self.std = values.mean(0), values.std(0)

    def undo(self, x):
        return x * self.std + self.mean  # raises


def case_normalizer():
    return Normalizer(torch.rand(4, 2)).undo(R(2, 2))


def case_normalizer_from_numpy():
    data = np.random.default_rng(0).random((4, 2)).astype(np.float32)
    return Normalizer(torch.from_numpy(data)).undo(R(2, 2))


def case_ndcg():
    discount = 1 / torch.log2(torch.arange(5).float() + 2)
    hits = (R(2, 5) > 0.5).float()
    return (hits * discount).sum(-1)  # raises


def case_np_unique():
    return len(np.unique(R(3, 2).detach().numpy()))  # raises


def case_logq():
    table = torch.from_numpy(np.log(np.ones(5, dtype=np.float32)))
    items = torch.zeros(2, dtype=torch.long, device=D)
    return R(2) - table[items.cpu()]  # raises


class Ranges:
    ranges = torch.tensor([[0.0, 8.0], [8.0, 1e8]])

    def __init__(self):
        self.local = self.ranges * 2

    def expand(self, points):
        return torch.cat([self.ranges[i].expand(len(p), 2) for i, p in enumerate(points)])


def case_class_table():
    pts = [R(3, 2), R(2, 2)]
    r = Ranges().expand(pts)
    return torch.cat(pts) >= r[:, :1]  # raises


def case_accepted_kwargs():
    import inspect

    def step(x, eta=0.0, noise=None):
        return x + noise if noise is not None else x  # raises
    accepted = inspect.signature(step).parameters
    kw = {k: v for k, v in {"eta": 1.0, "noise": torch.ones(2)}.items() if k in accepted}
    return step(R(2), **kw)


class Multi:
    def __init__(self, keep=False):
        self.keep, self.outputs = keep, []

    def step(self, eps):
        self.outputs.append(eps.cpu() if self.keep else eps)
        if len(self.outputs) > 1:
            eps = torch.lerp(self.outputs[-2], eps, 1.5)  # raises
        return eps


def case_history():
    m = Multi(True)
    for _ in range(3):
        m.step(R(2))


def case_history_kept():
    m = Multi()
    for _ in range(3):
        m.step(R(2))


def case_inpaint(mask=None):
    mask = torch.ones(2, 2) if mask is None else mask
    x, known = R(2, 2), torch.zeros(2, 2)
    for t in torch.arange(3):
        x = x * 0.9
        if mask is not None:
            x = mask * known + (1 - mask) * x  # raises
    return x


class Inst:
    def __init__(self, **f):
        self.fields = f

    def __getattr__(self, n):
        f = self.__dict__.get("fields", {})
        if n in f:
            return f[n]
        raise AttributeError(n)

    def __getitem__(self, item):
        return Inst(**{k: v[item] for k, v in self.fields.items()})  # raises

    def __len__(self):
        return len(next(iter(self.fields.values())))


def case_instances():
    i = Inst(boxes=torch.rand(3, 4), scores=torch.rand(3))
    return i[torch.tensor([0, 1], device=D)]


def case_instances_attr():
    i = Inst(boxes=torch.rand(3, 4))
    return i.boxes + R(3, 4)  # raises


def case_scale_list():
    class Scale(nn.Module):
        def __init__(self, v):
            super().__init__()
            self.s = nn.Parameter(torch.tensor([v]))

        def forward(self, x):
            return x * self.s  # raises

    class H(nn.Module):
        def __init__(self):
            super().__init__()
            scales = [Scale(1.0 + i) for i in range(2)]
            self.scales = scales

        def forward(self, feats):
            return [s(f) for f, s in zip(feats, self.scales)]
    return H().to(D)([R(2), R(2)])


def case_assign_mask():
    boxes, labels = R(4, 2), torch.ones(4, dtype=torch.long, device=D)
    best, index = boxes.cpu().max(dim=1)
    result = torch.full_like(index, -1)
    positive = best >= 0
    result[positive] = labels[index[positive]] + 1  # raises
    return result


def case_tuple_swap():
    a, b = R(2), torch.ones(2)
    a, b = b, a
    return a.mul_(b)  # raises


def case_islice():
    return sum(islice([R(2), torch.ones(2)], 2))  # raises


def case_islice_stops_before():
    rows = [R(2), R(2), torch.ones(2)]
    return sum(islice(rows, 2)) + sum(islice(rows, 1, 2))


def case_accumulate():
    return list(accumulate([R(2), torch.ones(2)]))  # raises


def case_zip_longest():
    for a, b in zip_longest([R(2)], [torch.ones(2)]):
        return a + b  # raises


def case_dict_update():
    d = {"x": R(2)}
    d.update(y=torch.ones(2))
    d |= {"z": torch.ones(2)}
    return d["x"] + d["y"]  # raises


def case_pop_default():
    d = {"x": torch.ones(2)}
    return R(2) + d.pop("x", None)  # raises


def case_ordered_popitem():
    d = OrderedDict(a=torch.ones(2))
    k, v = d.popitem()
    return R(2) + v  # raises


def case_setdefault():
    d = {}
    d.setdefault("a", []).append(torch.ones(2))
    return R(2) + d["a"][0]  # raises


def case_lambda_default():
    f = lambda x, w=torch.ones(2): x * w  # noqa: E731  # raises
    return f(R(2))


def case_chain_call():
    class B:
        def __init__(self):
            self.parts = []

        def add(self, p):
            self.parts.append(p)
            return self

        def build(self):
            return torch.cat(self.parts)  # raises
    return B().add(R(2)).add(torch.ones(2)).build()


def case_iter_next():
    it = iter([torch.ones(2), torch.zeros(2)])
    next(it)
    return R(2) + next(it)  # raises


def case_enumerate_store():
    out = [None] * 3
    for i, x in enumerate([torch.ones(2)] * 3):
        out[i] = x
    return torch.stack(out) + R(2)  # raises
