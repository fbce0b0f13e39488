"""What the command line sets, in two classes of data."""
import argparse
from dataclasses import dataclass, field, fields


@dataclass
class LayerConfig:
    count: int = 2
    width: int = 4
    scale: str = "none"


@dataclass
class RunConfig:
    steps: int = 1
    penalty: float = 1.0
    clip: float = 0.0
    by_class: bool = False
    resume: bool = False
    layers: LayerConfig = field(default_factory=LayerConfig)


def from_command_line():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--count", type=int, default=2)
    parser.add_argument("--width", type=int, default=4)
    parser.add_argument("--scale", choices=["none", "table", "buffer"], default="none")
    parser.add_argument("--penalty", type=float, default=1.0)
    parser.add_argument("--clip", type=float, default=0.0)
    parser.add_argument("--by-class", action="store_true")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--head", choices=["plain", "gated"], default="plain")
    parser.add_argument("--seed", type=int, default=0)
    options = vars(parser.parse_args())
    of_layers = {each.name for each in fields(LayerConfig)}
    of_run = {each.name for each in fields(RunConfig)}
    layers = LayerConfig(**{key: value for key, value in options.items() if key in of_layers})
    run = RunConfig(layers=layers, **{key: value for key, value in options.items() if key in of_run})
    return run, options["head"], options["seed"]
