import torch
import torch.nn as nn
import torch.nn.functional as F


def make_block(scale):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(4, 4)

        def forward(self, x):
            return self.lin(x) * scale  # raises

    return Block()


def case_class_captures():
    return make_block(torch.ones(4)).cuda()(torch.randn(2, 4, device="cuda"))


def case_class_captures_ok():
    return make_block(0.5).cuda()(torch.randn(2, 4, device="cuda"))


def local_fn(device):
    table = torch.arange(4.0)

    class Holder:
        def look(self, x):
            return x + table  # raises

        def look2(self, x):
            return x + table.to(device)

    return Holder()


def case_local_class():
    return local_fn("cuda").look(torch.ones(4, device="cuda"))


def case_local_class2():
    return local_fn("cuda").look2(torch.ones(4, device="cuda"))


class Many(nn.Module):
    def __init__(self, n=2):
        super().__init__()
        for i in range(n):
            setattr(self, f"w{i}", torch.ones(4))
            setattr(self, f"lin{i}", nn.Linear(4, 4))
        self.n = n

    def forward(self, x):
        for i in range(self.n):
            x = getattr(self, f"lin{i}")(x)
        return x

    def scaled(self, x):
        for i in range(self.n):
            x = x * getattr(self, f"w{i}")  # raises
        return x


def case_setattr():
    return Many().cuda()(torch.ones(2, 4, device="cuda"))


def case_setattr_bad():
    return Many().cuda().scaled(torch.ones(2, 4, device="cuda"))


def case_lambda():
    w = torch.ones(4)
    f = lambda x: x * w  # raises
    return f(torch.ones(4, device="cuda"))


def case_lambda_map():
    w = torch.ones(4)
    xs = [torch.ones(4, device="cuda") for _ in range(2)]
    return list(map(lambda x: x * w, xs))  # raises


def load(path, device):
    try:
        return torch.load(path)
    except FileNotFoundError:
        return {"w": torch.ones(4), "step": 0}


def case_try_load():
    state = load("/nonexistent/x.pt", "cuda")
    return state["w"] + torch.ones(4, device="cuda")  # raises


class Rnn:
    def __init__(self, n):
        self.n = n
        self.cell = nn.GRUCell(4, n).cuda()
        self.reset()

    def reset(self):
        self.state = torch.zeros(1, self.n)

    def step(self, x):
        self.state = self.cell(x, self.state)  # raises
        return self.state


def case_rnn():
    r = Rnn(3)
    return r.step(torch.zeros(1, 4, device="cuda"))


class Rnn2(Rnn):
    def reset(self):
        self.state = torch.zeros(1, self.n, device="cuda")


def case_rnn2():
    return Rnn2(3).step(torch.zeros(1, 4, device="cuda"))


class Mean:
    def __call__(self, x):
        return x.mean(0)


class Cond:
    def __init__(self, data, targets, mean=None):
        self.mean = mean or Mean()
        self.data = data
        self.targets = targets
        self.residual = targets - self.mean(targets)

    def predict(self, x):
        return x @ self.data.t() @ self.residual  # raises


def case_cond():
    c = Cond(torch.ones(3, 2), torch.ones(3))
    return c.predict(torch.ones(2, 2, device="cuda"))


def case_mask():
    m = torch.zeros(4, dtype=torch.bool)
    x = torch.ones(4, device="cuda")
    x[m] = 0.0
    idx = torch.tensor([0, 1], device="cuda")
    y = torch.ones(4)
    return y[idx]  # raises


def case_masked_rows():
    x = torch.ones(4, 3, device="cuda")
    m = x[:, 0] > 0
    sel = x[m]
    w = torch.arange(len(sel))
    return sel * w[:, None]  # raises


from functools import partial, lru_cache, reduce, wraps


@lru_cache(maxsize=None)
def grid(n):
    return torch.arange(n)


def case_lru():
    return torch.ones(4, device="cuda") * grid(4)  # raises


def with_default(fn):
    @wraps(fn)
    def inner(x, *args, **kw):
        kw.setdefault("scale", torch.ones(4))
        return fn(x, *args, **kw)
    return inner


@with_default
def scaled(x, scale):
    return x * scale  # raises


def case_decorated():
    return scaled(torch.ones(4, device="cuda"))


def case_decorated_ok():
    return scaled(torch.ones(4, device="cuda"), scale=2.0)


def case_partial():
    f = partial(torch.add, torch.ones(4))
    return f(torch.ones(4, device="cuda"))  # raises


def case_reduce():
    parts = [torch.ones(2, device=f"cuda:{i}") for i in range(2)]
    return reduce(lambda a, b: a + b, parts)  # raises


def case_reduce_op():
    import operator
    parts = [torch.ones(2, device=f"cuda:{i}") for i in range(2)]
    return reduce(operator.add, parts)  # raises


def case_dictcomp():
    w = {k: torch.ones(2) for k in "ab"}
    w = {k: v.cuda() if k == "a" else v for k, v in w.items()}
    return w["a"] + w["b"]  # raises


def case_enumerate_zip():
    a = [torch.ones(2, device="cuda")] * 3
    b = torch.ones(3, 2)
    out = []
    for i, (x, y) in enumerate(zip(a, b)):
        out.append(x * y)  # raises
    return out


def case_unzip():
    pairs = [(torch.ones(2).cuda(), torch.ones(2)) for _ in range(3)]
    xs, ys = zip(*pairs)
    return torch.stack(xs) - torch.stack(ys)  # raises


def case_sorted():
    items = sorted([(2, torch.ones(2).cuda()), (1, torch.ones(2).cuda())], key=lambda t: t[0])
    return items[0][1] + torch.ones(2)  # raises


def case_match(kind="b"):
    match kind:
        case "a":
            dev = "cuda"
        case _:
            dev = "cpu"
    return torch.ones(2, device=dev) + torch.ones(2, device="cuda")  # raises


def case_generator():
    def batches():
        for i in range(2):
            yield {"x": torch.ones(2), "y": torch.ones(2)}
    m = nn.Linear(2, 2).cuda()
    for b in batches():
        out = m(b["x"].cuda())
        F.mse_loss(out, b["y"])  # raises


def case_namedtuple():
    from collections import namedtuple
    B = namedtuple("B", "x y")
    b = B(torch.ones(2), torch.ones(2))
    b = B(*[t.cuda() for t in b])
    return b.x + b.y


def case_namedtuple_replace():
    from collections import namedtuple
    B = namedtuple("B", "x y")
    b = B(torch.ones(2), torch.ones(2))
    b = b._replace(x=b.x.cuda())
    return b.x + b.y  # raises


def case_asdict():
    from dataclasses import dataclass, fields, replace, asdict
    @dataclass
    class D:
        x: torch.Tensor
        y: torch.Tensor
        def to(self, device):
            return D(**{f.name: getattr(self, f.name).to(device) for f in fields(self)})
    d = D(torch.ones(2), torch.ones(2)).to("cuda")
    d2 = replace(d, y=torch.ones(2))
    (d.x + d.y).sum()
    return d2.x + d2.y  # raises


def case_vars():
    class O:
        def __init__(self):
            self.a = torch.ones(2)
            self.b = torch.ones(2)
        def to(self, device):
            for k, v in vars(self).items():
                if isinstance(v, torch.Tensor):
                    setattr(self, k, v.to(device))
            return self
    o = O().to("cuda")
    return o.a + torch.ones(2)  # raises


def case_dictobj():
    class O:
        def __init__(self):
            self.a = torch.ones(2)
            self.b = [torch.ones(2)]
        def cuda(self):
            self.__dict__ = {k: v.cuda() if torch.is_tensor(v) else v for k, v in self.__dict__.items()}
            return self
    o = O().cuda()
    return o.a + o.b[0]  # raises


def case_inplace_list():
    xs = [torch.ones(2), torch.ones(2)]
    for x in xs:
        x = x.cuda()
    return xs[0] + torch.ones(2, device="cuda")  # raises


def case_inplace_list2():
    xs = [torch.ones(2), torch.ones(2)]
    for i in range(len(xs)):
        xs[i] = xs[i].cuda()
    return xs[0] + torch.ones(2, device="cuda")
