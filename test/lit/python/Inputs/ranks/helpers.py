import os

import torch

LOCAL_RANK = int(os.getenv("LOCAL_RANK", "-1"))


def first_device(name=""):
    return torch.device("cpu" if name == "cpu" else "cuda:0")


def timed(x, device=None):
    return x.to(device or first_device())
