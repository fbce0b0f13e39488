"""Options in groups and commands, and those whose names are not written down."""

import argparse
from dataclasses import dataclass, fields

import torch


@dataclass
class Settings:
    kind: str = "plain"
    rounds: int = 1
    place: str = "cuda:0"

    @classmethod
    def parse(cls, argv):
        parser = argparse.ArgumentParser()
        for each in fields(cls):
            parser.add_argument(f"--{each.name}", type=each.type, default=each.default)
        return cls(**vars(parser.parse_args(argv)))


def _start(settings):
    value = torch.zeros(3, device=settings.place)
    if settings.kind == "shifted":
        value = value + torch.ones(3)  # raises
    return value


def case_field_by_field():
    _start(Settings.parse(["--kind", "shifted"]))


def case_other_kind():
    return _start(Settings.parse([]))


def _parsed(argv):
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--shift", action="store_true")
    parser = argparse.ArgumentParser(parents=[shared])
    group = parser.add_argument_group("where")
    group.add_argument("--device", default="cuda")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--scale", action="store_true")
    only.add_argument("--square", action="store_true")
    parser.set_defaults(rounds=2)
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("fit").add_argument("--centre", action="store_true")
    return parser.parse_args(argv)


def _run(args):
    value = torch.zeros(3, device=args.device)
    for _ in range(args.rounds):
        value = value.exp()
    if args.shift:
        value = value + torch.ones(3)  # raises
    if args.scale:
        value = value * torch.full((3,), 2.0)  # raises
    if args.command == "fit" and args.centre:
        value = value - torch.full((3,), 0.5)  # raises
    return value.square() if args.square else value


def case_of_a_parent():
    _run(_parsed(["--shift"]))


def case_of_a_group():
    _run(_parsed(["--scale"]))


def case_of_a_command():
    _run(_parsed(["fit", "--centre"]))


def case_of_none():
    return _run(_parsed(["--square"]))


class _Scaled:
    def __init__(self, size=3, bias="none", use_shift=False):
        self.size, self.bias, self.use_shift = size, bias, use_shift

    def __call__(self, x):
        x = x * 2
        if self.use_shift:
            x = x + torch.ones(self.size)  # raises
        return x


def case_options_of_a_file():
    import json
    _Scaled(**json.loads('{"use_shift": true}'))(torch.zeros(3, device="cuda"))
