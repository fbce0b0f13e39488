import numpy as np
import torch

import traps as T

GPU = "cuda:1"


def weighed_on_two():
    beam = T.Overlap()
    beam.weighed(torch.rand(3, 4, device="cuda:0"), 3)
    beam.weighed(torch.rand(3, 4, device=GPU), 2)


def overlap():
    beam = T.Overlap()
    for step in range(2):
        beam(torch.rand(2, device=GPU), torch.tensor([0, 1], device=GPU), step)


def stereo_cached():
    stereo = T.Stereo(torch.rand(3, 4))
    stereo.cached(torch.rand(2, 4))
    stereo.cached(torch.rand(2, 4, device=GPU))


CALLS = {
    "shifted_class": lambda: T.Shifted(device=GPU).shifted(torch.rand(3, device=GPU)),
    "with_offsets": lambda: T.Shifted(device=GPU).with_offsets(torch.rand(3, device=GPU)),
    "walks_of_a_loader": lambda: [T.WalkSampler([0, 4]).to(GPU)(each) for each in T.WalkSampler([0, 4]).loader()],
    "walks_of_a_caller": lambda: T.WalkSampler([0, 4]).to(GPU).shifted(torch.tensor([1, 2], device=GPU)),
    "threshold": lambda: T.Threshold(0.5, weights=2.0).to(GPU)(torch.rand(3, device=GPU)),
    "threshold_weighted": lambda: T.Threshold(0.5, weights=2.0).weighted(torch.rand(3, device=GPU)),
    "threshold_bounds": lambda: T.Threshold(0.5).within(torch.rand(3, device=GPU)),
    "rescaled": lambda: T.Rescaled(0.5)(torch.rand(3, device=GPU)),
    "positions": lambda: T.Positions().to(GPU)(3),
    "picked": lambda: T.picked({"x": torch.rand(4, device=GPU), "y": np.ones(4)}, torch.tensor([0, 1], device=GPU), torch.tensor([1, 0])),
    "shifted": lambda: T.shifted({"x": torch.rand(4, device=GPU)}, torch.tensor([0, 1], device=GPU)),
    "overlap": overlap,
    "overlap_weighed_on_two": weighed_on_two,
    "overlap_weighed": lambda: T.Overlap().weighed(torch.rand(3, 4, device=GPU), 3),
    "overlap_keep": lambda: T.Overlap().keep(torch.rand(2, 4, device=GPU)),
    "joined_by_name": lambda: T.joined_by_name({each + "_ids": torch.rand(2, device="cuda:0") for each in ("chosen", "rejected")}, GPU),
    "match": lambda: T.Filter({"device": GPU, "limit": 1}).match(torch.rand(2, 3), torch.rand(2), torch.rand(3)),
    "match_second": lambda: T.Filter({"device": GPU, "limit": 1}).match(torch.rand(2, 3), None, torch.rand(3)),
    "match_first": lambda: T.Filter({"device": GPU, "limit": 1}).match_first(torch.rand(2, 3), None, torch.rand(2, 3)),
    "stereo": lambda: T.Stereo(torch.rand(3, 4, device=GPU)).points(torch.rand(2, 4, device=GPU)),
    "stereo_cached": stereo_cached,
    "best_of_each": lambda: T.best_of_each(torch.tensor([[0.1, 0.9], [0.1, 0.2]], device=GPU), torch.rand(2, device=GPU)),
    "counted": lambda: T.counted(torch.rand(2, 3, device=GPU)),
    "pair": lambda: T.Pair().to(GPU)(torch.rand(4, device=GPU)),
    "pair_plain": lambda: T.Pair().to(GPU).plain(torch.rand(4, device=GPU)),
    "registry": lambda: T.Registry().to(GPU)(torch.rand(4, device=GPU)),
    "registry_spaced": lambda: T.Registry().to(GPU).spaced(2),
    "tasks": lambda: T.Tasks(3).marginal(torch.rand(3, device=GPU), torch.zeros(3, 1, device=GPU)),
    "tasks_moved": lambda: T.Tasks(3).moved(torch.rand(3, device=GPU), torch.zeros(3, 1, device=GPU)),
    "spaced": lambda: T.spaced(torch.rand(3, device=GPU), "abs"),
    "spaced_there": lambda: T.spaced_there(torch.rand(3, device=GPU), "abs"),
    "spaced_here": lambda: T.spaced_here(torch.rand(3, device=GPU), "abs"),
    "schedule": lambda: T.Schedule().noise(torch.rand(3, device=GPU), torch.tensor([1, 2])),
    "schedule_here": lambda: T.Schedule().noise_here(torch.rand(3, device=GPU), torch.tensor([1, 2])),
    "marked": lambda: T.marked(torch.rand(4, device=GPU), torch.tensor([[1, 2], [0, 3]], device=GPU)),
    "accuracy_of": lambda: T.accuracy_of((np.ones((2, 3)), np.zeros(2))),
    "put": lambda: T.put(torch.rand(3, device=GPU), "abs"),
    "padded_there": lambda: T.Padded()(torch.rand(3, device=GPU), torch.rand(3, device=GPU)),
    "unpadded": lambda: T.Padded().unpadded(torch.rand(3, device=GPU), torch.rand(3, device=GPU)),
    "aligned": lambda: T.Aligned().collater([T.Aligned()[0]]),
    "stack": lambda: T.Stack(3, 2).to(GPU)(torch.rand(2, 3, device=GPU)),
    "stack_masked": lambda: T.Stack(3, 2).to(GPU).masked(torch.rand(2, 3, device=GPU)),
    "stack_shifted": lambda: T.Stack(3, 2).to(GPU).shifted(torch.rand(2, 3, device=GPU)),
    "place_layers": lambda: T.place_layers(torch.nn.Sequential(torch.nn.Linear(3, 3)), GPU, torch.rand(3, device=GPU)),
    "placed": lambda: T.Placed(GPU).run(torch.rand(3)),
    "placed_all": lambda: T.Placed(GPU).run_all([(torch.rand(3), torch.nn.Linear(3, 3))]),
    "encoders": lambda: T.Encoders().encode([torch.nn.Linear(3, 3)], GPU, torch.rand(3, device=GPU)),
    "encoders_rows": lambda: T.Encoders().rows(2, 3, GPU),
}
