import torch

FIRST = torch.device("cuda:0")
SECOND = torch.device("cuda:1" if torch.cuda.device_count() > 1 else "cuda:0")

WIDTH = 4
DEPTH = 2
BATCH = 2
STEPS = 2
SIZE = 8
