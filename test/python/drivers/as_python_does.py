from types import SimpleNamespace

import torch
from as_python_does import *  # noqa: F401,F403


def x():
    return torch.ones(3, device="cuda")


CALLS = {
    "forward": lambda: Model(3).to("cuda")(x()),
    "plain": lambda: Model(3).to("cuda").plain(x()),
    "noise": lambda: Noise()(torch.ones(2, 2, device="cuda")),
    "shift": lambda: Shift()(torch.ones(2, 2, device="cuda")),
    "gain": lambda: Gain()(torch.ones(2, 2, device="cuda")),
    "norm_of": lambda: norm_of(x()),
    "rows_of": lambda: rows_of(x(), torch.ones(3, 2, device="cuda") > 0),
    "host_rows_of": lambda: host_rows_of(x(), torch.ones(3, 2, device="cuda") > 0),
    "total": lambda: total([x()], x()),
    "part_of": lambda: part_of(["a", "b"], x()),
    "better": lambda: better("min", x()),
    "better_there": lambda: better_there("max", x()),
    "moved_by_hand": lambda: moved_by_hand(torch.nn.Linear(3, 3), x()),
    "moved": lambda: moved({"a": torch.ones(3)}, "cuda")["a"] + x(),
    "on_gpu": lambda: on_gpu(1),
    "on_that_gpu": lambda: on_that_gpu(SimpleNamespace(gpu="1")),
    "averages": lambda: averages({"a": torch.ones(2, 3)}, x()),
    "step": lambda: Clipped([x(), x()]).step(),
    "with_head": lambda: with_head(Headless(), 3),
    "predictor": lambda: Predictor(3).to("cuda")(x()),
    "softer": lambda: Softer(3).to("cuda")(x()),
    "made": lambda: Placed(torch.device("cuda:0")).made(x()),
    "made_elsewhere": made_elsewhere,
    "around": lambda: Around(torch.nn.Linear(3, 3)).to("cuda")(x()),
    "around_there": lambda: Around(torch.nn.Linear(3, 3)).to("cuda").there(x()),
    "spread_out": lambda: spread_out(x()),
    "scaled": lambda: scaled(x()),
    "placed": lambda: PlainFirst().placed(x()),
    "there": lambda: PlainFirst().there(x()),
    "flat": lambda: flat(x(), x()),
}
