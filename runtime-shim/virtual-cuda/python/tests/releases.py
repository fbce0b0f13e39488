"""What the installed PyTorch has. Tests of newer releases are skipped in older ones."""

import functools
import unittest

import torch


def has(name):
    """Whether torch has `name`, such as "amp.GradScaler"."""
    try:
        functools.reduce(getattr, name.split("."), torch)
    except AttributeError:
        return False
    return True


def needs(name):
    return unittest.skipUnless(has(name), f"torch.{name} is not in PyTorch {torch.__version__}")


def untyped_storage(tensor):
    return tensor.untyped_storage() if has("Tensor.untyped_storage") else tensor.storage().untyped()
