import torch

import traps as T

GPU = "cuda:1"
CALLS = {
    "walks_of_a_loader": lambda: [T.WalkSampler([0, 4]).to(GPU)(each) for each in T.WalkSampler([0, 4]).loader()],
    "walks_of_a_caller": lambda: T.WalkSampler([0, 4]).to(GPU).shifted(torch.tensor([1, 2], device=GPU)),
}
