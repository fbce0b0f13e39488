"""Indexing, gathering and scattering."""
from dataclasses import dataclass, fields

import numpy as np
import torch
import torch.nn as nn

CUDA = torch.device("cuda:0")
PALETTE = torch.tensor([[0, 0, 0], [128, 0, 0], [0, 128, 0]], dtype=torch.uint8)


# --- chosen actions


class Trajectory:
    def __init__(self, steps=5):
        rng = np.random.default_rng(0)
        self.actions = rng.integers(0, 3, steps).tolist()
        self.rewards = rng.random(steps)

    @property
    def action_index(self):
        return torch.tensor(self.actions)


def chosen_by_gather(logits, trajectory):
    return logits.log_softmax(-1).gather(1, trajectory.action_index.unsqueeze(1))  # raises


def chosen_by_index(logits, trajectory):
    log_probs = logits.log_softmax(-1)
    return log_probs[torch.arange(len(log_probs)), trajectory.action_index]


def policy_loss(choose):
    policy = nn.Linear(4, 3).to(CUDA)
    trajectory = Trajectory()
    chosen = choose(policy(torch.randn(5, 4, device=CUDA)), trajectory)
    weights = torch.as_tensor(trajectory.rewards).to(chosen)
    return -(chosen.flatten() * weights).mean()


def case_policy_gather():
    policy_loss(chosen_by_gather).backward()


def case_policy_index():
    policy_loss(chosen_by_index).backward()


# --- sums over segments


def segment_sum(values, segments, count, out=None):
    out = torch.zeros(count, values.size(1)) if out is None else out
    return out.scatter_add_(0, segments[:, None].expand_as(values), values)  # raises


def segment_mean(values, segments, count):
    total = segment_sum(values, segments, count, out=values.new_zeros(count, values.size(1)))
    return total / segments.bincount(minlength=count).clamp(min=1)[:, None]


def nodes():
    return torch.randn(6, 3, device=CUDA), torch.tensor([0, 0, 1, 2, 2, 2], device=CUDA)


def case_segment_sum():
    return segment_sum(*nodes(), 3)


def case_segment_mean():
    return segment_mean(*nodes(), 4)


class Graph:
    def __init__(self, edges, features):
        self.edges, self.features = edges, features

    def aggregate(self, reduce="add"):
        source, target = self.edges.unbind(1)
        messages = self.features[source]
        if reduce == "last":
            # the later edge wins
            kept = self.features.clone()
            kept[target] = messages
            return kept
        return torch.zeros_like(self.features).index_add_(0, target, messages)  # raises


def case_edges_added():
    return Graph(torch.tensor([[0, 1], [1, 2], [2, 2]]), torch.randn(3, 4, device=CUDA)).aggregate()


def case_edges_overwritten():
    return Graph(torch.tensor([[0, 1], [1, 2]]), torch.randn(3, 4, device=CUDA)).aggregate("last")


# --- tables on the host


def colourize(prediction, palette=PALETTE):
    labels = prediction.argmax(1)
    return palette[labels].permute(0, 3, 1, 2)  # raises


def colourize_on_host(prediction):
    return PALETTE[prediction.argmax(1).cpu()].numpy()


def case_colourize():
    return colourize(torch.randn(1, 3, 4, 4, device=CUDA))


def case_colourize_with_palette():
    return colourize(torch.randn(1, 3, 4, 4, device=CUDA), PALETTE.to(CUDA))


def case_colourize_on_host():
    return colourize_on_host(torch.randn(1, 3, 4, 4, device=CUDA)).sum()


def case_names_of_best():
    names, counts = ["cat", "dog", "owl"], torch.tensor([5, 6, 7])
    best = torch.tensor([[0.1, 0.7, 0.2]], device=CUDA).argmax(1)[0]
    return names[best], counts[best].item()


# --- subsets


def random_rows(x, count, seed=0):
    chosen = np.random.default_rng(seed).choice(len(x), count, replace=False)
    return chosen


def farthest_point(points, count):
    """Indices of points far from each other, the first of them 0."""
    chosen = [0]
    distance = (points - points[0]).norm(dim=1)
    while len(chosen) < count:
        chosen.append(distance.argmax().item())
        distance = torch.minimum(distance, (points - points[chosen[-1]]).norm(dim=1))
    return torch.LongTensor(chosen)


def case_rows_by_numpy():
    x = torch.randn(8, 3, device=CUDA)
    return x[random_rows(x, 3)]


def case_farthest_points():
    points = torch.randn(8, 3, device=CUDA)
    return torch.index_select(points, 0, farthest_point(points, 3))  # raises


def case_farthest_points_indexed():
    points = torch.randn(8, 3, device=CUDA)
    return points[farthest_point(points, 3)]


@dataclass
class Instances:
    boxes: torch.Tensor
    scores: torch.Tensor
    areas: torch.Tensor

    def __getitem__(self, item):
        return Instances(*(getattr(self, f.name)[item] for f in fields(self)))  # raises

    def strongest(self, count):
        return self[self.scores.topk(count).indices]

    def above(self, threshold):
        return self[(self.scores > threshold).tolist()]


def detected():
    boxes = torch.rand(5, 4, device=CUDA)
    sizes = boxes.cpu().numpy()
    return Instances(boxes, torch.linspace(0.1, 0.9, 5, device=CUDA), torch.from_numpy(sizes[:, 2] * sizes[:, 3]))


def case_instances_strongest():
    return detected().strongest(2)


def case_instances_above():
    return detected().above(0.4).areas.mean()


def case_instances_slice():
    return detected()[1:3]


class Memory:
    """Neighbours' values from a bank in host memory."""

    def __init__(self, keys):
        self.keys = keys
        self.values = torch.arange(len(keys)).float().repeat(2, 1)

    def nearest(self, queries, k):
        return torch.cdist(queries, self.keys.to(queries)).topk(k, largest=False).indices

    def read(self, queries, k=2):
        found = self.nearest(queries, k)
        return torch.take_along_dim(self.values, found, dim=1)  # raises

    def read_back(self, queries, k=2):
        return torch.take_along_dim(self.values, self.nearest(queries, k).cpu(), dim=1).to(queries)


def case_memory():
    return Memory(torch.randn(6, 3)).read(torch.randn(2, 3, device=CUDA))


def case_memory_back():
    return Memory(torch.randn(6, 3)).read_back(torch.randn(2, 3, device=CUDA))


# --- writing


def overwrite(x, where, values):
    x = x.clone()
    x[where] = values  # raises
    return x


def case_overwrite_slice_from_host():
    return overwrite(torch.zeros(4, 3, device=CUDA), slice(1, 3), torch.ones(2, 3))


def case_overwrite_scalar_from_host():
    return overwrite(torch.zeros(4, 3, device=CUDA), torch.tensor([0, 2]), torch.tensor(5.0))


def case_overwrite_rows_from_host():
    return overwrite(torch.zeros(4, 3, device=CUDA), torch.tensor([0, 2]), torch.ones(2, 3))


def imputed(x, fallback):
    missing = torch.isnan(x)
    columns = fallback.expand_as(x)
    return x.masked_scatter(missing, columns[missing])  # raises


def case_imputed():
    x = torch.tensor([[1.0, float("nan")], [float("nan"), 4.0]], device=CUDA)
    return imputed(x, torch.tensor([0.5, 0.6]))


def case_imputed_from_column_means():
    x = torch.tensor([[1.0, float("nan")], [float("nan"), 4.0]], device=CUDA)
    return imputed(x, x.nanmean(dim=0))


# --- bins


class Quantizer:
    def __init__(self, low, high, bins):
        self.edges = torch.linspace(low, high, bins + 1)[1:-1]
        self.centres = nn.Parameter(torch.linspace(low, high, bins))

    def encode(self, x):
        return torch.bucketize(x, self.edges)  # raises

    def decode(self, codes):
        return self.centres[codes]


def case_quantized():
    quantizer = Quantizer(-1, 1, 8)
    return quantizer.decode(quantizer.encode(torch.randn(5, device=CUDA)))


def case_quantized_on_host():
    quantizer = Quantizer(-1, 1, 8)
    return quantizer.decode(quantizer.encode(torch.randn(5, device=CUDA).cpu())).to(CUDA)
