from deeper import *
import torch


def _hidden():
    return torch.ones(3)
