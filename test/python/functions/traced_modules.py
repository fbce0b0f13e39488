from collections import OrderedDict
from contextlib import AbstractContextManager, ExitStack
import torch
import torch.nn as nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.b = nn.Linear(2, 2)

    def forward(self, x):
        return self.b(self.a(x))


class Trace(AbstractContextManager):
    def __init__(self, model, layer, retain_input=False, edit=None, keep=None):
        self.input = self.output = None
        self.keep = keep or (lambda t: t.detach())

        def hook(module, args, output):
            self.input = self.keep(args[0]) if retain_input else None
            output = edit(output, layer) if edit is not None else output
            self.output = self.keep(output)
            return output
        self.handle = model.get_submodule(layer).register_forward_hook(hook)

    def __exit__(self, *exc):
        self.handle.remove()


class TD(OrderedDict):
    def __init__(self, layers):
        super().__init__()
        for l in layers:
            self[l] = torch.ones(2)


class TraceDict(OrderedDict, AbstractContextManager):
    def __init__(self, model, layers, **kw):
        super().__init__()
        self.stack = ExitStack()
        for layer in layers:
            self[layer] = self.stack.enter_context(Trace(model, layer, **kw))

    def __exit__(self, *exc):
        self.stack.close()


def case_a():
    m = M().cuda()
    with Trace(m, "a", retain_input=True) as t:
        m(torch.ones(1, 2).cuda())
    return t.input + torch.ones(2)  # raises


def case_b():
    t = TD(["x"])
    return t["x"] + torch.ones(2).cuda()  # raises


def case_c():
    t = TD(["x"])
    for k, v in t.items():
        return v + torch.ones(2).cuda()  # raises


def case_d():
    m = M().cuda()
    with ExitStack() as s:
        t = s.enter_context(Trace(m, "a"))
        m(torch.ones(1, 2).cuda())
    return t.output + torch.ones(2)  # raises


def case_e():
    m = M().cuda()
    with TraceDict(m, ["a"]) as td:
        m(torch.ones(1, 2).cuda())
    return td["a"].output + torch.ones(2)  # raises


def case_f():
    m = M().cuda()
    with TraceDict(m, ["a", "b"]) as td:
        m(torch.ones(1, 2).cuda())
    return {k: t.output for k, t in td.items()}["b"] + torch.ones(2)  # raises


def case_g():
    m = M().cuda()
    with TraceDict(m, ["a", "b"]) as td:
        m(torch.ones(1, 2).cuda())
    for v in {k: t.output for k, t in td.items()}.values():
        return v + torch.ones(2)  # raises


def edit(output, layer):
    return output + torch.ones(2)  # raises


def case_h():
    m = M().cuda()
    with Trace(m, "a", edit=edit):
        m(torch.ones(1, 2).cuda())


class Box:
    def __init__(self, c):
        self.c = torch.ones(2)
        self.c2 = c

    def edit(self, output, layer):
        return output + self.c  # raises

    def edit2(self, output, layer, strength):
        return output * strength + self.c  # raises

    def edit3(self, output, layer, strength):
        return output * strength + self.c2


from functools import partial


def case_i():
    m = M().cuda()
    with Trace(m, "a", edit=Box(1).edit):
        m(torch.ones(1, 2).cuda())


def case_j():
    m = M().cuda()
    with TraceDict(m, ["a"], edit=partial(Box(1).edit2, strength=2.0)):
        m(torch.ones(1, 2).cuda())


def case_k():
    m = M().cuda()
    with TraceDict(m, ["a"], edit=partial(Box(1).edit3, strength=2.0)):
        m(torch.ones(1, 2).cuda())
