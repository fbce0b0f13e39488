# Hand-made model parallelism, the current device, hooks that move, streams.
import contextlib
from functools import reduce, wraps
from itertools import cycle
from types import SimpleNamespace

import torch
import torch.nn as nn
import torch.nn.functional as F


def on_module_device(forward):
    @wraps(forward)
    def inner(self, *args, **kwargs):
        dev = next(self.parameters()).device
        args = tuple(a.to(dev) if isinstance(a, torch.Tensor) else a for a in args)
        return forward(self, *args, **kwargs)
    return inner


class Block(nn.Module):
    def __init__(self, d=4):
        super().__init__()
        self.ln, self.fc = nn.LayerNorm(d), nn.Linear(d, d)

    @on_module_device
    def forward(self, x):
        return x + self.fc(self.ln(x)).relu()


class LM(nn.Module):
    def __init__(self, vocab=11, d=4, n=4):
        super().__init__()
        self.wte = nn.Embedding(vocab, d)
        self.blocks = nn.ModuleList([Block(d) for _ in range(n)])
        self.ln_f = nn.LayerNorm(d)
        self.head = nn.Linear(d, vocab, bias=False)
        self.shift = nn.Parameter(torch.zeros(d))

    def spread(self, devices):
        it = cycle(devices)
        self.wte.to(devices[0]); self.shift.data = self.shift.data.to(devices[0])
        for b in self.blocks:
            b.to(next(it))
        last = devices[-1]
        for m in (self.ln_f, self.head):
            m.to(last)
        return self

    def forward(self, ids, labels=None, shift=False):
        h = self.wte(ids)
        for b in self.blocks:
            h = b(h)
        if shift:
            h = h * (1 + self.shift)  # raises
        logits = self.head(self.ln_f(h.to(self.head.weight.device)))
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1))  # raises
        return SimpleNamespace(logits=logits, loss=loss)


DEVS = ["cuda:0", "cuda:1"]


# broken
def case_labels_on_the_first_gpu():
    lm = LM().spread(DEVS)
    ids = torch.randint(0, 11, (2, 5), device=DEVS[0])
    lm(ids).logits.mean().backward()
    return lm(ids, labels=ids).loss.item()


# clean
def case_labels_follow_logits():
    lm = LM().spread(DEVS)
    opt = torch.optim.AdamW(lm.parameters(), lr=1e-2)
    tot = torch.zeros((), device=DEVS[0])
    for _ in range(2):
        ids = torch.randint(0, 11, (2, 5)).to(DEVS[0])
        out = lm(ids, labels=ids.to(lm.head.weight.device))
        out.loss.backward()
        opt.step(); opt.zero_grad()
        tot += out.loss.detach().to(tot.device)
    greedy = out.logits[:, -1].argmax(-1, keepdim=True).to(ids.device)
    return torch.cat([ids, greedy], 1).tolist(), tot.item()


# broken
def case_root_parameter_meets_last_block():
    lm = LM().spread(DEVS)
    with torch.no_grad():
        ids = torch.arange(6, device=DEVS[0]).view(1, -1)
        plain = lm(ids).logits
        return lm(ids, shift=True).logits - plain


# broken
def case_current_device_decides():
    w = torch.randn(4, 4, device="cuda:0")
    outs = []
    for k in range(torch.cuda.device_count()):
        with torch.cuda.device(k):
            noise = torch.randn(4, 4, device="cuda")      # the current one
            outs.append((w + noise).norm().item())  # raises
    return outs


# clean
def case_current_device_restored():
    torch.cuda.set_device(1)
    try:
        a = torch.ones(3).cuda()
        assert a.device.index == 1
        with torch.cuda.device("cuda:0"):
            b = torch.ones(3).cuda() * 2
            s = torch.cuda.Stream()
            with torch.cuda.stream(s):
                c = b + torch.zeros(3, device="cuda")
            torch.cuda.current_stream().wait_stream(s)
        d = a + torch.zeros(3, device="cuda")
        e = c.type_as(d) if c.device == d.device else c.to(d.device)
        return (d + e).sum().item()
    finally:
        torch.cuda.set_device(0)


# clean
def case_dispatch_hooks_and_replicas():
    def align(module, dev):
        module.to(dev)

        def pre(mod, args):
            return tuple(a.to(dev) if torch.is_tensor(a) else a for a in args)

        return module.register_forward_pre_hook(pre)

    stages = nn.Sequential(*[nn.Linear(4, 4) for _ in range(4)])
    with contextlib.ExitStack() as stack:
        for i, s in enumerate(stages):
            stack.callback(align(s, torch.device("cuda", i // 2)).remove)
        x = torch.randn(3, 4)
        y = stages(x)
    assert str(y.device) == "cuda:1"
    reps = [nn.Linear(4, 2).to(d) for d in DEVS]
    for r in reps[1:]:
        r.load_state_dict(reps[0].state_dict())
    outs = [r(p.to(d)) for r, p, d in zip(reps, y.chunk(2), DEVS)]
    joined = torch.cat([o.to(DEVS[0]) for o in outs])
    joined.sum().backward()
    total = reduce(lambda a, g: a + g.to(a.device), (r.weight.grad for r in reps))
    for r in reps:
        r.weight.grad.copy_(total / len(reps))
    return total.shape
