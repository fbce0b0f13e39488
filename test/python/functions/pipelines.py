"""Data pipelines and collate functions."""
from collections import namedtuple
from dataclasses import dataclass
from typing import Sequence

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

GPU = torch.device("cuda", 0)
Batch = namedtuple("Batch", "x y meta")


# --- a data set that keeps what it has made


class Memoized(Dataset):
    def __init__(self, size=4, keep_on=None):
        self.size, self.keep_on = size, keep_on
        self.memory = {}

    def __len__(self):
        return self.size

    def make(self, index):
        return torch.full((3,), float(index))

    def __getitem__(self, index):
        if index not in self.memory:
            sample = self.make(index)
            self.memory[index] = sample.to(self.keep_on) if self.keep_on else sample
            return sample
        return self.memory[index]


def stack_rows(rows):
    return torch.stack(rows)  # raises


def case_memoized_on_gpu():
    dataset = Memoized(keep_on=GPU)
    dataset[1]
    return [b.to(GPU).sum() for b in DataLoader(dataset, batch_size=2, collate_fn=stack_rows)]


def case_memoized_on_host():
    loader = DataLoader(Memoized(), batch_size=2, collate_fn=stack_rows)
    return [b.to(GPU).sum() for _ in range(2) for b in loader]


# --- moving nested batches


def move_flat(batch, device):
    return {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in batch.items()}


def move_deep(value, device):
    if torch.is_tensor(value):
        return value.to(device)
    if isinstance(value, dict):
        return {k: move_deep(v, device) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(move_deep(v, device) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(move_deep(v, device) for v in value)
    return value


def forward_with_offsets(net, batch):
    return net(batch["x"] + batch["extras"]["offset"])  # raises


def nested_batch():
    return {"x": torch.randn(4, 3), "extras": {"offset": torch.ones(4, 1), "ids": list("abcd")}, "pair": (1, torch.ones(2))}


def case_nested_flat():
    return forward_with_offsets(nn.Linear(3, 2).to(GPU), move_flat(nested_batch(), GPU))


def case_nested_deep():
    return forward_with_offsets(nn.Linear(3, 2).to(GPU), move_deep(nested_batch(), GPU))


def case_named_tuple_deep():
    batch = move_deep(Batch(torch.randn(2, 3), [torch.ones(2)], {"n": 2}), GPU)
    return batch.x.sum(1) + batch.y[0]


def case_named_tuple_replaced():
    net = nn.Linear(3, 2).to(GPU)
    batch = Batch(torch.randn(2, 3), torch.tensor([0, 1]), None)
    batch._replace(x=batch.x.to(GPU), y=batch.y.to(GPU))
    return net(batch.x)  # raises


def case_loop_over_tensors():
    batch = [torch.randn(2, 3), torch.randn(2, 3)]
    weight = torch.randn(3, 3, device=GPU)
    for part in batch:
        part = part.to(GPU, non_blocking=True)
    left, right = batch
    return (left * right).mm(weight)  # raises


# --- transforms


@dataclass
class Normalize:
    mean: Sequence[float] = (0.5, 0.4, 0.3)
    std: Sequence[float] = (0.2, 0.2, 0.2)
    follow: bool = False

    def table(self, values, x):
        made = torch.as_tensor(values, dtype=x.dtype, device=x.device if self.follow else None)
        return made[:, None, None]

    def __call__(self, x):
        return (x - self.table(self.mean, x)) / self.table(self.std, x)  # raises


class Compose:
    def __init__(self, *steps, device=None):
        self.steps, self.device = steps, device

    def __call__(self, x):
        if self.device is not None:
            x = x.to(self.device)
        for step in self.steps:
            x = step(x)
        return x


def case_normalize_on_gpu():
    return Compose(Normalize(), torch.Tensor.contiguous, device=GPU)(torch.rand(2, 3, 4, 4))


def case_normalize_following():
    return Compose(Normalize(follow=True), torch.flatten, device=GPU)(torch.rand(2, 3, 4, 4))


def case_normalize_then_move():
    return Compose(Normalize(), lambda x: x.to(GPU))(torch.rand(2, 3, 4, 4))


# --- mixing samples


def mixup(x, y, per_sample=False, alpha=0.4):
    n = x.size(0)
    beta = torch.distributions.Beta(alpha, alpha)
    lam = beta.sample((n, 1)) if per_sample else beta.sample()
    order = torch.randperm(n)
    mixed = lam * x + (1 - lam) * x[order]  # raises
    return mixed, y, y[order], lam


def case_mixup():
    x, y = torch.randn(4, 3, device=GPU), torch.arange(4, device=GPU)
    return mixup(x, y)


def case_mixup_by_sample():
    x, y = torch.randn(4, 3, device=GPU), torch.arange(4, device=GPU)
    return mixup(x, y, per_sample=True)


# --- padding


def pad_to(row, length, filler):
    missing = length - row.shape[0]
    if missing <= 0:
        return row[:length]
    return torch.cat([row, filler(row, missing)])  # raises


def plain_zeros(row, n):
    return torch.zeros(n, *row.shape[1:], dtype=row.dtype)


def same_zeros(row, n):
    return row.new_zeros((n,) + row.shape[1:])


def encoded_rows():
    embed = nn.Embedding(9, 4).to(GPU)
    return [embed(torch.tensor(ids, device=GPU)) for ids in ([1, 2, 3], [4, 5, 6], [7])]


def case_padded_rows():
    return torch.stack([pad_to(row, 3, plain_zeros) for row in encoded_rows()])


def case_padded_rows_of_same_kind():
    return torch.stack([pad_to(row, 4, same_zeros) for row in encoded_rows()])


def case_truncated_rows():
    return torch.stack([pad_to(row, 1, plain_zeros) for row in encoded_rows()])


# --- sampling and order


def by_length(lengths):
    """Shuffled, then sorted by length so that ties stay shuffled."""
    shuffled = torch.randperm(len(lengths))
    keys = lengths[shuffled]
    return shuffled[keys.argsort(stable=True)].tolist()  # raises


def case_order_by_length():
    mask = torch.ones(5, 4, device=GPU).tril()
    return by_length(mask.sum(1))


def case_order_by_length_on_host():
    return by_length(torch.tensor([3, 1, 2]))


def case_weighted_sampler():
    labels = torch.tensor([0, 0, 0, 1], device=GPU)
    weights = 1.0 / torch.bincount(labels)[labels]
    sampler = WeightedRandomSampler(weights.tolist(), 6)
    return [labels[i].item() for i in sampler]


# --- out of the pipeline


class Recorder:
    def __init__(self):
        self.columns = {}

    def add(self, **columns):
        for name, values in columns.items():
            self.columns.setdefault(name, []).append(np.asarray(values))  # raises

    def table(self):
        return {name: np.concatenate(parts) for name, parts in self.columns.items()}


def case_record_predictions():
    recorder, net = Recorder(), nn.Linear(3, 1).to(GPU)
    for x in torch.randn(2, 4, 3):
        with torch.no_grad():
            recorder.add(inputs=x, predicted=net(x.to(GPU))[:, 0])
    return recorder.table()


def case_record_lists():
    recorder, net = Recorder(), nn.Linear(3, 1).to(GPU)
    for x in torch.randn(2, 4, 3):
        recorder.add(inputs=x, predicted=net(x.to(GPU))[:, 0].tolist())
    return recorder.table()
