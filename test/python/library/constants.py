from typing import List, Optional, Sequence, Tuple

import torch
from torch import Tensor

MASSES = torch.tensor([1.0, 12.0, 16.0])
SHIFT = torch.zeros(3)


def centre(pos: Tensor, atoms: Tensor) -> Tensor:
    mass = MASSES[atoms.cpu()].to(pos.device)
    return (pos * mass[:, None]).sum(0) / mass.sum()


def fractions(atoms: Tensor) -> Tensor:
    weighted = torch.bincount(atoms, minlength=3) * MASSES  # raises
    return weighted / weighted.sum()


def shifted(pos: Tensor) -> Tensor:
    return pos + SHIFT.to(pos)


def scaled(deltas: Tensor, std: Sequence[float] = (0.1, 0.2, 0.3)) -> Tensor:
    return deltas / torch.as_tensor(std, dtype=deltas.dtype)  # raises


def scaled_there(deltas: Tensor, std: Tuple[float, ...] = (0.1, 0.2, 0.3)) -> Tensor:
    return deltas / torch.as_tensor(std, dtype=deltas.dtype, device=deltas.device)


def scaled_by_one(deltas: Tensor, std: float = 0.1) -> Tensor:
    return deltas / torch.as_tensor(std)


def weighted(losses: Tensor, weights: Optional[List[float]] = None) -> Tensor:
    if weights is None:
        return losses.mean()
    return (losses * losses.new_tensor(weights)).sum()
