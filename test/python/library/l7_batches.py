"""What callers pass without a type: batches, records, lists, and classes behind classes."""
from typing import List, Union

import torch
import torch.nn as nn
from torch import Tensor


def degrees(edge_index, count):
    row, col = edge_index
    found = torch.zeros(count)
    return found.scatter_add_(0, row.view(-1), torch.ones(row.size(0), device=row.device))  # raises


def degrees_there(edge_index, count):
    row, col = edge_index
    found = torch.zeros(count, device=row.device)
    return found.scatter_add_(0, row.view(-1), torch.ones(row.size(0), device=row.device))


def centred(sample):
    points = sample["points"]
    middle = torch.full((1, points.size(-1)), 0.5)
    return points.unsqueeze(0) - middle  # raises


def centred_there(sample):
    points = sample["points"]
    middle = torch.full((1, points.size(-1)), 0.5).to(points.device)
    return points.unsqueeze(0) - middle


class Turn:
    def __call__(self, record):
        where = record.position
        turn = torch.eye(where.size(-1))
        record.position = where.matmul(turn)  # raises
        return record


class TurnThere:
    def __call__(self, record):
        where = record.position
        turn = torch.eye(where.size(-1), device=where.device)
        record.position = where.matmul(turn)
        return record


def replaced(sample):
    sample["mask"] = torch.ones(3)
    mask = sample["mask"]
    return mask.unsqueeze(0) + torch.zeros(3)


def tasks_of(*parameters):
    chosen = parameters[0].long()
    return torch.eq(torch.arange(4).unsqueeze(-1), chosen)  # raises


def first_of_each(rows: Tensor):
    rows, places, counts = torch.unique(rows, dim=0, return_inverse=True, return_counts=True)
    ends = counts.cumsum(0)
    return torch.cat((torch.tensor([0]), ends[:-1]))  # raises


def joined(parts: List[Tensor]):
    return torch.cat([torch.zeros(1)] + parts)  # raises


def spaced(rows, width: int):
    least = torch.zeros(1, width)
    for i in range(width):
        least[:, i] = rows[:, i].min()
    return rows.mul_(0.5).div_(least)  # raises


def pair_of(x: Union[Tensor, tuple]):
    if isinstance(x, Tensor):
        x = (x, x)
    return x[0] + torch.arange(3)  # raises


def scaled(image: Tensor, mean: Tensor):
    if mean.shape:
        mean = mean[..., None, None].to(image.device)
    return image - mean


def scaled_by_length(image: Tensor, mean: Tensor):
    if len(mean.shape) != 0:
        mean = mean[..., None, None].to(image.device)
    return image - mean


def weighted(values: Tensor, weights=None):
    values, weights = values.view(-1), _or_ones(weights, values)
    return (values * weights).sum()


def _or_ones(weights, values):
    if weights is None:
        weights = torch.ones_like(values)
    return weights


def device_of(tensors):
    found = None
    for each in tensors:
        if each is not None and isinstance(each, Tensor):
            found = each.device
    return found if found is not None else torch.device("cpu")


def between(left: Tensor, right: Tensor):
    device = device_of([left, right])
    return left + torch.full((3,), 0.5, device=device) * right


def like_the_other(left: Tensor, right: Tensor):
    score = (left > 0).to(right).sum()
    return score + (left * right).sum()


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.values = torch.linspace(0, 1, 10)


class Lookup(Table):
    def forward(self, index):
        return self.values[index.long()]  # raises


class Steps(Table):
    def forward(self, index):
        return self.values.to(index.device)[index.long()]


class Offsets(nn.Module):
    def __init__(self, offsets):
        super().__init__()
        self.offsets = torch.tensor(offsets).view(-1, 2)

    def forward(self, features):
        rows = torch.arange(features.shape[-1], device=features.device)
        return rows[:, None] + self.offsets  # raises


def variance_of(schedule, step: Tensor, sample: Tensor):
    table = torch.gather(schedule.table, 0, step.cpu())
    return table.to(sample.device) * sample


def earlier_of(schedule, step, sample: Tensor):
    before = torch.clamp(step - schedule.width // 2, 0, schedule.width)
    table = schedule.table.gather(0, before.cpu())
    return table.to(sample.device) * sample
