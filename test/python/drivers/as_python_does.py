from types import SimpleNamespace

import torch
from as_python_does import *  # noqa: F401,F403


def x():
    return torch.ones(3, device="cuda")


def spread(committee):
    committee.spread()
    return committee


def masked(masks):
    masks.compute()
    masks.apply()


def weighted(mean):
    mean.update(x().sum())
    return mean.weighted()


def targets():
    return Targets(torch.ones(3), torch.ones(3), torch.ones(3)).to("cuda")


def started_again(module):
    module.reset()
    return module


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
    "consensus": lambda: spread(Committee()).consensus(),
    "step_of_table": lambda: step_of_table(x(), 1),
    "shares_of": lambda: shares_of(x()),
    "summed": lambda: summed(2),
    "first_and_last": lambda: first_and_last(x(), ["cuda:0", "cuda:1"]),
    "in_turn": lambda: in_turn(x(), ["cuda:0", "cuda:1"]),
    "all_of": lambda: Tables({"a": 3}).to("cuda").all_of("a"),
    "all_there": lambda: Tables({"a": 3}).to("cuda").all_there("a"),
    "windowed": lambda: windowed(x()),
    "activated": lambda: activated(x()),
    "offsets": lambda: offsets(x(), [1, 2]),
    "boxes": lambda: Boxes(torch.ones(3)).to("cuda").merged(x()).masks(3),
    "scored": lambda: scored(torch.nn.Linear(3, 3).to("cuda"), x()),
    "scored_there": lambda: scored_there(torch.nn.Linear(3, 3).to("cuda"), torch.ones(2, 3)),
    "kept_columns": lambda: kept_columns(torch.nn.Linear(3, 3).to("cuda"), [1]),
    "masks": lambda: masked(Masks(torch.nn.Sequential(torch.nn.Linear(3, 3)).to("cuda"))),
    "mean": lambda: weighted(Mean()),
    "picked": lambda: picked(x(), torch.tensor([1, 2], device="cuda")),
    "rated": lambda: rated(4),
    "seen": lambda: Seen(torch.ones(3, 2)).clash(
        torch.tensor([1, 2], device="cuda"), torch.ones(2, 1, dtype=torch.long, device="cuda")),
    "times_of": lambda: times_of({"scores": x()}),
    "made": lambda: Placed(torch.device("cuda:0")).made(x()),
    "made_elsewhere": made_elsewhere,
    "around": lambda: Around(torch.nn.Linear(3, 3)).to("cuda")(x()),
    "around_there": lambda: Around(torch.nn.Linear(3, 3)).to("cuda").there(x()),
    "spread_out": lambda: spread_out(x()),
    "scaled": lambda: scaled(x()),
    "placed": lambda: PlainFirst().placed(x()),
    "there": lambda: PlainFirst().there(x()),
    "flat": lambda: flat(x(), x()),
    "histogram": lambda: Histogram().to("cuda").update(x()),
    "usable": lambda: targets().usable(),
    "labelled": lambda: targets().labelled(),
    "peak": lambda: started_again(Peak(3).to("cuda"))(x()),
    "experts": lambda: Experts(3, ["cuda:0", "cuda:1"])(torch.ones(4, 3, device="cuda")),
    "left": lambda: Experts(3, ["cuda:0", "cuda:1"]).left(torch.ones(4, 3, device="cuda")),
    "prompted": lambda: Prompted(3).to("cuda")(x()),
    "prompted_shifted": lambda: Prompted(3).to("cuda").shifted(x()),
    "recorded": lambda: recorded(x(), HOST),
    "recorded_there": lambda: recorded(x(), Queue()),
    "brought": lambda: (brought(x()), brought(x(), "cuda")),
    "brought_alone": lambda: brought_alone(x(), "cuda"),
    "messages": lambda: Messages(x(), {"device": torch.device("cpu")}).plain(x()),
    "messages_there": lambda: Messages(x(), {"device": torch.device("cuda")}).plain(x()),
    "blended": lambda: blended(x(), x()),
    "error": lambda: (Error(lambda state: (x(), x())).step(0), Error(lambda state: (1.0, 2.0)).step(0)),
}
