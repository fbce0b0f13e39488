from types import SimpleNamespace

import torch
from open_objects import *


def mesh():
    return SimpleNamespace(pos=torch.rand(5, 3, device="cuda"), face=torch.tensor([[0, 1], [2, 3], [4, 0]], device="cuda"))


def replaced():
    model = Classifier(3, 2)
    model.reset_classifier(4)
    return model.cuda()(torch.rand(2, 3, device="cuda"))


CALLS = {
    "noisy": lambda: noisy(3, device="cuda", dtype=torch.double),
    "on_accelerator": lambda: on_accelerator(3),
    "prefetched": lambda: Prefetcher("cuda").send(torch.rand(3)),
    "replaced": replaced,
    "ranks": lambda: ranks([{"kind": "sample", "scores": torch.rand(4, 2, device="cuda")}], 4),
    "sample": lambda: SamplePoints(2, include_normals=True)(mesh()),
    "sample_beside": lambda: SampleBeside(5)(mesh()),
    "series": lambda: Series(torch.rand(3)).to("cpu").numpy(),
    "with_noise": lambda: with_noise(torch.rand(3, device="cuda"), 2.0, {"device": "cuda"}),
    "stack": lambda: Stack(["cuda:0", "cuda:1"], 3)(
        torch.rand(2, 3), [torch.rand(2, 1, device=f"cuda:{i}") for i in range(2)]
    ),
}
