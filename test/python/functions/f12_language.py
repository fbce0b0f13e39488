import argparse
import functools
import itertools
from contextlib import nullcontext
from typing import Any, Callable, Dict, Iterator, List, Optional, Union

import torch
import torch.nn as nn
import torch.nn.functional as F

_DEVICE = None


def _get_device():
    global _DEVICE
    if _DEVICE is None:
        _DEVICE = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    return _DEVICE


def _synthetic(n, dim=4) -> Iterator[Dict[str, Any]]:
    for i in range(n):
        yield {"x": torch.randn(3, dim), "y": torch.randint(0, 2, (3,)), "meta": {"id": i, "prior": torch.rand(2)}}


def _prefetch(iterable, device):
    for batch in iterable:
        yield {k: v.to(device) if hasattr(v, "to") else v for k, v in batch.items()}


def _to(obj, device):
    if isinstance(obj, dict):
        return {k: _to(v, device) for k, v in obj.items()}
    if isinstance(obj, (list, tuple)):
        return type(obj)(_to(o, device) for o in obj)
    return obj.to(device) if torch.is_tensor(obj) else obj


def generator_of_moved_batches():
    net = nn.Linear(4, 2).to(_get_device())
    total = 0.0
    for batch in _prefetch(_synthetic(2), _get_device()):
        total += F.cross_entropy(net(batch["x"]), batch["y"]).item()
    return total


def nested_entry_not_moved():
    net = nn.Linear(4, 2).to(_get_device())
    total = 0.0
    for batch in _prefetch(_synthetic(2), _get_device()):
        logits = net(batch["x"])
        logits = logits + batch["meta"]["prior"].log()  # raises
        total += F.cross_entropy(logits, batch["y"]).item()
    return total


def nested_entry_moved_recursively():
    net = nn.Linear(4, 2).to(_get_device())
    total = 0.0
    for batch in map(functools.partial(_to, device=_get_device()), _synthetic(2)):
        logits = net(batch["x"]) + batch["meta"]["prior"].log()
        total += F.cross_entropy(logits, batch["y"]).item()
    return total


def _inference(fn: Callable) -> Callable:
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        with torch.no_grad():
            return fn(*args, **kwargs)

    return wrapper


class Predictor:
    def __init__(self, net, device: Union[str, torch.device, None] = None, **options):
        self.net = net
        self.device = torch.device(device) if device is not None else next(net.parameters()).device
        self.options = {"bias": None, "temperature": 1.0, **options}

    @_inference
    def __call__(self, x, *extra, **kw):
        x = x.to(self.device)
        if extra:
            x = x + sum(e.to(x) for e in extra)
        logits = self.net(x) / kw.get("temperature", self.options["temperature"])
        if self.options["bias"] is not None:
            logits = logits + self.options["bias"]  # raises
        return logits.softmax(-1)


def predictor_with_extras():
    p = Predictor(nn.Linear(4, 2).cuda(), temperature=2.0)
    return p(torch.randn(3, 4), torch.ones(4), torch.zeros(3, 1)).tolist()


def predictor_with_a_bias():
    p = Predictor(nn.Linear(4, 2).cuda(), device="cuda", bias=torch.tensor([0.5, -0.5]))
    return p(torch.randn(3, 4)).tolist()


def _pad(seqs: List[torch.Tensor], value=0, side="right"):
    n = max(s.size(0) for s in seqs)
    out = []
    for s in seqs:
        missing = n - s.size(0)
        if missing > 0:
            filler = torch.full((missing,), value, dtype=s.dtype)
            s = torch.cat([s, filler] if side == "right" else [filler, s])  # raises
        out.append(s)
    return torch.stack(out)


def pad_equal_lengths():
    return _pad([torch.arange(3, device="cuda"), torch.arange(3, device="cuda")])


def pad_unequal_lengths():
    return _pad([torch.arange(3, device="cuda"), torch.arange(5, device="cuda")], side="left")


def _try_fused(x, w):
    try:
        import some_fused_kernels_that_nobody_has  # noqa: F401

        return some_fused_kernels_that_nobody_has.rms_norm(x, w)
    except ImportError:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def fused_kernel_fallback():
    dev = _get_device()
    x = torch.randn(2, 4, device=dev)
    norm = nn.LayerNorm(4).to(dev)
    return _try_fused(x, norm.weight), _try_fused(x.cpu(), norm.weight.cpu())


def fallback_weight_by_getattr():
    dev = _get_device()
    x = torch.randn(2, 4, device=dev)
    norm = nn.Identity().to(dev)
    weight = getattr(norm, "weight", torch.ones(4))
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight  # raises


def _make_closure(net, x, y, device):
    weights = torch.linspace(1, 2, len(y))

    def closure():
        net.zero_grad()
        per = F.cross_entropy(net(x), y, reduction="none")
        loss = (per * weights.to(device)).mean()
        loss.backward()
        return loss

    return closure


def lbfgs_closure():
    dev = _get_device()
    net = nn.Linear(4, 2).to(dev)
    x, y = torch.randn(3, 4, device=dev), torch.tensor([0, 1, 1], device=dev)
    opt = torch.optim.LBFGS(net.parameters(), max_iter=2)
    return opt.step(_make_closure(net, x, y, dev)).item()


def schedule_of_lambdas():
    dev = _get_device()
    table = {"linear": lambda t: 1 - t, "cosine": lambda t: torch.cos(t * 1.57), "step": lambda t: (t < 0.5).float()}
    x = torch.randn(5, 2).to(dev)
    outs = {}
    for name, fn in table.items():
        t = torch.linspace(0, 1, steps=x.shape[0])
        outs[name] = x * fn(t)[:, None]  # raises
    return outs


def where_with_masks_and_numbers():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", type=torch.device, default="cuda:3")
    parser.add_argument("--fill", type=float, default=-1e9)
    args = parser.parse_args([])
    scores = torch.randn(2, 5, device=args.device)
    lengths = torch.tensor([5, 2], device=args.device)
    keep = torch.arange(5, device=args.device)[None] < lengths[:, None]
    scores = torch.where(keep, scores, torch.tensor(args.fill, device=args.device))
    best, where = scores.max(-1)
    picked = [scores[i, j] for i, j in enumerate(where)]
    return torch.stack(picked).eq(best).all().item()


class Callbacks:
    def __init__(self, *fns):
        self.fns = list(fns)

    def fire(self, **state):
        for fn in self.fns:
            state.update(fn(state) or {})
        return state


def callbacks_over_a_state_dict():
    dev = _get_device()

    def predict(state):
        return {"pred": state["net"](state["x"].to(dev)).argmax(-1)}

    def score(state):
        return {"acc": state["pred"].eq(state["y"]).float().mean()}  # raises

    net = nn.Linear(4, 2).to(dev)
    state = Callbacks(predict, score).fire(net=net, x=torch.randn(3, 4), y=torch.tensor([0, 1, 1]))
    return state["acc"].item()
