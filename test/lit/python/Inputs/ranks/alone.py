import torch

from helpers import timed

if __name__ == "__main__":
    print(timed(torch.rand(3)).sum())
