"""What is not known is asked twice, and the answer is the same."""
import argparse
import os
from types import SimpleNamespace

import torch
from torch import nn

settings = SimpleNamespace(**{name.lower(): bool(int(value)) for name, value in [("CUDA", os.environ.get("GPU", "1"))]})


def _loaded(**options):
    return dict(options)


def case_flag_of_the_environment():
    use_gpu = bool(int(os.environ.get("USE_GPU", "1")))
    net, x = nn.Linear(3, 1), torch.randn(2, 3)
    if use_gpu:
        net = net.cuda()
    for _ in range(2):
        batch = x
        if use_gpu:
            batch = batch.cuda()
        net(batch)


def case_other_flag():
    use_gpu = bool(int(os.environ.get("USE_GPU", "1")))
    use_half = bool(int(os.environ.get("USE_HALF", "0")))
    net, x = nn.Linear(3, 1), torch.randn(2, 3)
    if use_gpu:
        net = net.cuda()
    if use_half:
        x = x.cuda()
    return net(x)  # raises


def _step(options):
    net, x = nn.Linear(3, 1), torch.randn(2, 3)
    if options.cuda:
        net.cuda()
    if options.cuda:
        x = x.cuda()
    return net(x)


def case_attribute_of_settings():
    return _step(settings)


def case_entry_of_settings():
    chosen = _loaded(device=os.environ.get("DEVICE", "cuda"))
    net, x = nn.Linear(3, 1), torch.randn(2, 3)
    if chosen["device"] == "cuda":
        net.cuda()
    if chosen.get("device") == "cuda":
        x = x.cuda()
    return net(x)


class Trainer:
    def __init__(self):
        self.use_gpu = _loaded(gpu=torch.cuda.is_available())["gpu"]
        self.net = nn.Linear(3, 1)
        if self.use_gpu:
            self.net.cuda()

    def step(self, x):
        if self.use_gpu:
            x = x.cuda()
        return self.net(x)


def case_field_of_the_object():
    trainer = Trainer()
    for _ in range(2):
        trainer.step(torch.randn(2, 3))


def case_options_in_a_loop():
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-cuda", action="store_true")
    args = parser.parse_args([])
    args.cuda = not args.no_cuda and torch.cuda.is_available()
    net = nn.Linear(3, 3)
    if args.cuda:
        net.cuda()
    best = float("inf")
    for _ in range(3):
        x = torch.rand(4, 3)
        if args.cuda:
            x = x.cuda()
        loss = net(x).sum().item()
        if loss < best:
            best = loss


def case_number_at_indices():
    matrix = torch.zeros(3, 3).cuda()
    diagonal = torch.arange(3)
    matrix[diagonal, diagonal] = 1.0
    return matrix
