from train_state import *
import tempfile
import torch
from torch import nn

D = "cuda:0"


def net(device=D):
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(device)


def xy():
    return torch.rand(5, 4, device=D), torch.rand(5, 2, device=D)


def grads(model):
    model.zero_grad()
    model(xy()[0]).pow(2).mean().backward()
    return model



def shadow():
    m = net()
    e = ShadowEMA(m.parameters())
    e.step(m.parameters())
    e.copy_to(net("cuda:1").parameters())


def polyak(restart):
    m = net()
    a = PolyakAverage(m)
    a.update(m)
    if restart:
        with tempfile.NamedTemporaryFile() as f:
            torch.save(a.state_dict(), f.name)
            a = PolyakAverage(m)
            a.load_state_dict(torch.load(f.name, map_location="cpu"))
    a.update(m)


def steps(make, n=3):
    m = net()
    o = make(m.parameters())
    for _ in range(n):
        grads(m)
        o.step()



def norm(split):
    a, b = net(), net()
    grads(a), grads(b)
    if split:
        b = nn.Linear(4, 4).to("cuda:1")
        b(torch.rand(2, 4, device="cuda:1")).sum().backward()
    global_norm([*a.parameters(), *b.parameters()])


def clip():
    adaptive_clip_(grads(net()).parameters())


def buffer(accumulate):
    m = grads(net())
    b = GradBuffer(m.parameters())
    b.store()
    if accumulate:
        grads(m)
        b.accumulate()
    b.release()


def engine(n=2, **kw):
    e = Engine(net("cpu"), **kw)
    for _ in range(n):
        e.train_step(*xy())
    return e


def checkpoint(use):
    with tempfile.TemporaryDirectory() as folder:
        e = engine()
        c = CheckpointManager(folder)
        c.save("last", e.model, e.optimizer)
        use(c, folder + "/last.pt", Engine(net("cpu")))


def resume(c, path, e):
    c.resume("last", e.model, e.optimizer)
    e.train_step(*xy())


def by_name(c, path, e):
    load_optimizer_by_name(e.optimizer, e.model, c.load("last")["by_name"])
    e.train_step(*xy())


def rows(by_index):
    m = nn.Embedding(6, 4)
    FrozenRows(m, [4, 5], by_index)
    m.to(D)
    m(torch.tensor([1, 4, 5], device=D)).sum().backward()


def history(name):
    h = LossHistory()
    for _ in range(12):
        h.update(torch.rand((), device=D))
    getattr(h, name)()


def l2sp():
    m = net("cpu")
    r = L2SP(m)
    r.to(D)(m.to(D)).backward()


CALLS = {
    "shadow": shadow,
    "polyak": lambda: polyak(False),
    "polyak_restart": lambda: polyak(True),
    "lamb": lambda: steps(Lamb),
    "lamb_clipped": lambda: steps(lambda p: Lamb(p, max_grad_norm=1.0)),
    "lookahead": lambda: steps(lambda p: Lookahead(torch.optim.SGD(p, lr=0.1))),
    "norm": lambda: norm(False),
    "norm_split": lambda: norm(True),
    "clip": clip,
    "buffer": lambda: buffer(False),
    "buffer_accumulated": lambda: buffer(True),
    "engine": lambda: engine(4, accumulate=2),
    "engine_ema": lambda: engine(ema=True),
    "resume": lambda: checkpoint(resume),
    "by_name": lambda: checkpoint(by_name),
    "wise_ft": lambda: checkpoint(lambda c, path, e: wise_ft(e.model, path)),
    "rows": lambda: rows(False),
    "rows_index": lambda: rows(True),
    "history": lambda: history("median"),
    "history_trimmed": lambda: history("trimmed"),
    "l2sp": l2sp,
}
