"""Objects, registries, callbacks, arrays and containers that hand tensors on."""
import abc, copy, collections, contextlib, dataclasses, enum, functools, itertools, math, operator, random, types, weakref
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

D = torch.device("cuda:0")
R = lambda *s: torch.rand(*s, device=D)


class Base(abc.ABC):
    def run(self, x):
        y = self.pre(x)
        return self.post(self.core(y))
    def pre(self, x): return x
    def post(self, x): return x
    @abc.abstractmethod
    def core(self, x): ...

class Centered(Base):
    def __init__(self): self.mean = torch.zeros(4)
    def core(self, x): return x - self.mean  # raises

def case_template(): return Centered().run(R(2, 4))


class Registry:
    def __init__(self): self._d = {}
    def register(self, name=None):
        def deco(cls):
            self._d[name or cls.__name__] = cls
            return cls
        return deco
    def build(self, cfg):
        cfg = dict(cfg)
        kind = cfg.pop("type")
        return self._d[kind](**cfg)

MODELS = Registry()

@MODELS.register()
class LinHead(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.fc = nn.Linear(dim, 2)
        self.scale = torch.ones(2)
    def forward(self, x):
        return self.fc(x) * self.scale  # raises

def case_registry():
    m = MODELS.build({"type": "LinHead", "dim": 4}).to(D)
    return m(R(3, 4))


class Callback:
    def on_batch_end(self, trainer, out): pass

class Ema(Callback):
    def __init__(self): self.value = None
    def on_batch_end(self, trainer, out):
        if self.value is None:
            self.value = out["loss"].detach().cpu().view(1)
        else:
            self.value = 0.9 * self.value + 0.1 * out["loss"].detach().view(1)  # raises

class Trainer:
    def __init__(self, model, callbacks=()):
        self.model = model
        self.callbacks = list(callbacks)
        self.device = next(model.parameters()).device
    def call(self, name, *args):
        for c in self.callbacks:
            getattr(c, name)(self, *args)
    def step(self, batch):
        x, y = (t.to(self.device) for t in batch)
        loss = F.mse_loss(self.model(x), y)
        return {"loss": loss}
    def fit(self, data):
        for batch in data:
            self.call("on_batch_end", self.step(batch))

def case_callbacks():
    t = Trainer(nn.Linear(4, 1).to(D), [Ema()])
    t.fit([(torch.rand(2, 4), torch.rand(2, 1)) for _ in range(3)])


class Stats:
    def __init__(self, n): self.n = n; self.reset()
    def reset(self):
        self.sum = torch.zeros(self.n)
        self.count = 0
    def update(self, x):
        self.sum += x.sum(0)  # raises
        self.count += x.shape[0]
    @property
    def mean(self): return self.sum / max(self.count, 1)

def case_reset():
    s = Stats(3)
    s.update(R(2, 3))
    return s.mean


class Buf:
    def __init__(self, cap): self.data = deque(maxlen=cap)
    def push(self, *t): self.data.append(t)
    def sample(self, n):
        rows = random.sample(self.data, n)
        return [torch.stack(c) for c in zip(*rows)]

def case_replay():
    b = Buf(10)
    q = nn.Linear(3, 2).to(D)
    for _ in range(4):
        b.push(torch.rand(3), torch.tensor(1.0), R(3))
    s, r, n = b.sample(2)
    target = r + q(n).max(1)[0]  # raises
    return target


@dataclass
class Batch:
    x: torch.Tensor
    y: torch.Tensor
    mask: Optional[torch.Tensor] = None
    def to(self, d):
        return Batch(self.x.to(d), self.y.to(d), self.mask)

def masked(batch, model):
    out = model(batch.x)
    return (out.masked_fill(batch.mask, 0.0) - batch.y).sum()  # raises

def case_dataclass_to():
    b = Batch(torch.rand(2, 4), torch.rand(2, 4), torch.ones(2, 4, dtype=torch.bool)).to(D)
    return masked(b, nn.Linear(4, 4).to(D))


class Meta(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = []
        for i in range(2):
            self.layers.append(nn.Linear(4, 4))
    def forward(self, x):
        for l in self.layers:
            x = l(x)  # raises
        return x

def case_list_layers(): return Meta().to(D)(R(2, 4))


class Attn(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(4, 12)
        self._mask = None
    def mask(self, n):
        if self._mask is None or self._mask.size(0) < n:
            self._mask = torch.full((n, n), float("-inf")).triu(1)
        return self._mask[:n, :n]
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        a = q @ k.transpose(1, 2) / 2
        a = a + self.mask(x.size(1))  # raises
        return a.softmax(-1) @ v

class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Attn() for _ in range(2)])
        self.norm = nn.LayerNorm(4)
    def forward(self, x):
        for b in self.blocks: x = x + b(x)
        return self.norm(x)

def case_cache_mask(): return Stack().to(D)(R(2, 3, 4))


class Opt:
    def __init__(self, params, lr):
        self.params = list(params)
        self.lr = lr
        self.state = {}
    def step(self):
        for p in self.params:
            if p.grad is None: continue
            st = self.state.setdefault(p, {})
            if "m" not in st:
                st["m"] = torch.zeros(p.shape)
            st["m"].mul_(0.9).add_(p.grad)  # raises
            p.data.add_(st["m"], alpha=-self.lr)

def case_own_optimizer():
    m = nn.Linear(3, 1).to(D)
    o = Opt(m.parameters(), 0.1)
    m(R(2, 3)).sum().backward()
    o.step()


class Sched:
    def __init__(self, n=10):
        self.betas = torch.linspace(1e-4, 0.02, n)
        self.ac = torch.cumprod(1 - self.betas, 0)
    def add_noise(self, x, noise, t):
        a = self.extract(self.ac, t, x.shape)
        return a.sqrt() * x + (1 - a).sqrt() * noise
    @staticmethod
    def extract(a, t, shape):
        out = a.gather(0, t)  # raises
        return out.reshape(t.shape[0], *((1,) * (len(shape) - 1)))

def case_sched():
    x = R(2, 3)
    t = torch.randint(0, 10, (2,), device=D)
    return Sched().add_noise(x, torch.randn_like(x), t)


class Mixin:
    def normalize(self, x): return (x - self.mu) / self.sd  # raises

class Policy(Mixin, nn.Module):
    def __init__(self):
        nn.Module.__init__(self)
        self.net = nn.Linear(3, 2)
        self.mu, self.sd = torch.zeros(3), torch.ones(3)
    def forward(self, x): return self.net(self.normalize(x))

def case_mixin(): return Policy().to(D)(R(2, 3))


class Lazy:
    @functools.cached_property
    def table(self): return torch.arange(10).float()
    def look(self, idx): return self.table[idx] + 0  # raises

def case_cached_property(): return Lazy().look(torch.zeros(2, dtype=torch.long, device=D))

class Prior:
    @functools.cached_property
    def centers(self): return torch.rand(5, 2)
    def dist(self, x): return torch.cdist(x, self.centers)  # raises

def case_cdist(): return Prior().dist(R(3, 2))


def to_device(obj, device):
    if torch.is_tensor(obj): return obj.to(device)
    if isinstance(obj, dict): return {k: to_device(v, device) for k, v in obj.items()}
    if isinstance(obj, (list, tuple)): return type(obj)(to_device(o, device) for o in obj)
    return obj

def case_nested():
    batch = {"x": torch.rand(2, 3), "meta": {"w": torch.rand(3)}, "l": [torch.rand(3)]}
    moved = to_device(batch, D)
    a = moved["x"] * moved["meta"]["w"] + moved["l"][0]
    return a + batch["meta"]["w"]  # raises


class Conf:
    def __init__(self, **kw): self.__dict__.update(kw)

def case_conf():
    c = Conf(device="cuda:0", w=torch.ones(3))
    return torch.rand(3, device=c.device) * c.w  # raises


class Ctx:
    def __init__(self): self.saved = {}
    def __setitem__(self, k, v): self.saved[k] = v
    def __getitem__(self, k): return self.saved[k]

def case_item_methods():
    c = Ctx()
    c["a"] = torch.ones(2)
    return R(2) + c["a"]  # raises


class Node:
    def __init__(self, value, left=None, right=None):
        self.value, self.left, self.right = value, left, right
    def total(self):
        s = self.value
        for child in (self.left, self.right):
            if child is not None:
                s = s + child.total()  # raises
        return s

def case_tree():
    return Node(R(2), Node(torch.ones(2)), None).total()


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.feats = {}
        self.a.register_forward_hook(self.save("a"))
    def save(self, name):
        def hook(m, i, o): self.feats[name] = o.detach().cpu()
        return hook
    def forward(self, x):
        y = self.a(x)
        return y + self.feats["a"]  # raises

def case_hook(): return Hooked().to(D)(R(2, 3))


def make_loss(weight):
    w = torch.tensor(weight)
    def loss(pred, y):
        return (F.mse_loss(pred, y, reduction="none") * w).mean()  # raises
    return loss

def case_closure():
    f = make_loss([1.0, 2.0])
    return f(R(3, 2), R(3, 2))


class Env:
    def reset(self): return np.zeros(3, dtype=np.float32)
    def step(self, a): return np.ones(3, dtype=np.float32), 1.0, False, {}

def case_env():
    env, net = Env(), nn.Linear(3, 2).to(D)
    obs = env.reset()
    x = torch.from_numpy(obs).unsqueeze(0)
    return net(x)  # raises

def case_env_action():
    env, net = Env(), nn.Linear(3, 2).to(D)
    x = torch.as_tensor(env.reset(), device=D).unsqueeze(0)
    a = net(x).argmax(1).numpy()  # raises
    return env.step(a)


class Pipeline:
    def __init__(self, *stages): self.stages = stages
    def __call__(self, x):
        return functools.reduce(lambda acc, s: s(acc), self.stages, x)

class Scale:
    def __init__(self, s): self.s = torch.as_tensor(s)
    def __call__(self, x): return x * self.s  # raises

def case_pipeline(): return Pipeline(nn.ReLU(), Scale([1.0, 2.0]))(R(3, 2))


class Gen:
    def __iter__(self):
        for i in range(3):
            yield torch.rand(2), i

def case_generator():
    t = R(2)
    for x, i in Gen():
        t = t + x  # raises
    return t


class Model2(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(10, 4)
        self.pos = nn.Embedding(10, 4)
    def forward(self, ids):
        p = torch.arange(ids.size(1)).expand_as(ids)
        return self.emb(ids) + self.pos(p)  # raises

class Wrapper(nn.Module):
    def __init__(self, m): super().__init__(); self.module = m
    def __getattr__(self, n):
        try: return super().__getattr__(n)
        except AttributeError: return getattr(self.module, n)
    def forward(self, *a, **k): return self.module(*a, **k)

def case_wrapper(): return Wrapper(Model2()).to(D)(torch.zeros(2, 3, dtype=torch.long, device=D))


class Shadow:
    def __init__(self, model):
        self.shadow = {n: p.detach().clone().cpu() for n, p in model.named_parameters()}
    def update(self, model):
        for n, p in model.named_parameters():
            self.shadow[n].mul_(0.9).add_(p.detach(), alpha=0.1)  # raises

def case_ema():
    m = nn.Linear(2, 2).to(D)
    s = Shadow(m)
    s.update(m)


class Meter:
    def __init__(self): self.vals = []
    def add(self, v): self.vals.append(v)
    def value(self): return np.mean(self.vals)  # raises

def case_meter():
    m = Meter()
    for _ in range(2): m.add(R(1))
    return m.value()


class Acc:
    def __init__(self, k): self.mat = torch.zeros(k, k, dtype=torch.long); self.k = k
    def __call__(self, p, t):
        idx = t * self.k + p
        self.mat += torch.bincount(idx, minlength=self.k ** 2).view(self.k, self.k)  # raises
        return self

def case_confusion():
    return Acc(3)(torch.zeros(4, dtype=torch.long, device=D), torch.ones(4, dtype=torch.long, device=D))


class Strat(enum.Enum):
    MEAN = "mean"
    CLS = "cls"

class Pool:
    def __init__(self, how): self.how = Strat(how)
    def __call__(self, h, m):
        if self.how is Strat.CLS: return h[:, 0]
        return (h * m.unsqueeze(-1)).sum(1)  # raises

def case_enum(): return Pool("mean")(R(2, 3, 4), torch.ones(2, 3))


class Point(NamedTuple):
    a: torch.Tensor
    b: torch.Tensor

def case_namedtuple():
    p = Point(R(2), torch.ones(2))
    p = p._replace(a=p.a * 2)
    return p.a + p.b  # raises

def case_zip_dict():
    names = ["a", "b"]
    d = dict(zip(names, [R(2), torch.ones(2)]))
    return d["a"] + d["b"]  # raises

def case_sorted():
    rows = [(0.3, torch.ones(2)), (0.1, torch.zeros(2))]
    best = sorted(rows, key=lambda r: r[0])[0][1]
    return R(2) * best  # raises

def case_nonlocal():
    total = torch.zeros(1)
    def add(x):
        nonlocal total
        total = total + x.sum()
    def sub(x):
        nonlocal total
        total = R(1)
    sub(1)
    return total + torch.ones(1)  # raises

def case_starargs():
    def f(*ts, weight=None):
        out = torch.stack(ts)
        return out * weight  # raises
    return f(R(2), R(2), weight=torch.ones(2))

def case_walrus():
    xs = [torch.ones(2)]
    if (n := len(xs)) > 0 and (y := xs[0]) is not None:
        return R(2) + y  # raises

def case_try():
    try:
        z = torch.load("/nonexistent")
    except FileNotFoundError:
        z = torch.zeros(2)
    return R(2) + z  # raises

def case_global_dict():
    return R(3) + _TABLE["ones"]  # raises

_TABLE = {"ones": torch.ones(3)}

def case_slice_obj():
    s = slice(0, 2)
    x = torch.rand(4)[s]
    return R(2) + x  # raises

def case_np_assign():
    a = np.zeros((2, 3), dtype=np.float32)
    a[0, :] = 1.0
    return R(2, 3) + torch.from_numpy(a)  # raises

def case_np_random():
    a = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    return R(2, 3) + torch.tensor(a)  # raises

def case_np_perm():
    i = np.random.permutation(4)
    x = torch.rand(4)[i]
    return x + R(4)  # raises

def case_state_dict():
    m = nn.Linear(2, 2).to(D)
    cpu = {k: v.cpu() for k, v in m.state_dict().items()}
    return m.weight + cpu["weight"]  # raises

def case_operator():
    return operator.add(R(2), torch.ones(2))  # raises

def case_apply():
    m = nn.Linear(2, 2).to(D)
    ref = copy.deepcopy(m).cpu()
    diffs = [(a - b).norm() for a, b in zip(m.parameters(), ref.parameters())]  # raises
    return diffs

def case_exitstack():
    with contextlib.ExitStack() as st:
        st.enter_context(torch.no_grad())
        return R(2) + torch.ones(2)  # raises

def case_partial():
    f = functools.partial(torch.where, torch.ones(2, dtype=torch.bool))
    return f(R(2), R(2))  # raises

def case_any_all():
    xs = [R(2), torch.ones(2)]
    if all(torch.is_tensor(x) for x in xs):
        return torch.cat(xs)  # raises

def case_max_key():
    cands = [torch.ones(2), torch.zeros(2)]
    best = max(cands, key=lambda t: t.sum().item())
    return best * R(2)  # raises

def case_while():
    beams = [(torch.tensor([0]), 0.0)]
    emb = nn.Embedding(5, 4).to(D)
    while len(beams) < 3:
        seq, s = beams[-1]
        beams.append((torch.cat([seq, seq[-1:]]), s))
    return emb(beams[-1][0])  # raises
