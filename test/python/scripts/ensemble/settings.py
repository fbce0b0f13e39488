from dataclasses import dataclass, replace
from typing import List, Tuple

import torch


@dataclass(frozen=True)
class Settings:
    members: int = 3
    features: int = 3
    hidden: Tuple[int, ...] = (6, 6)
    batch_size: int = 8
    rounds: int = 2
    acquire: int = 2
    swag_rank: int = 2

    def with_(self, **changes):
        return replace(self, **changes)


def devices_of(n: int) -> List[torch.device]:
    count = torch.cuda.device_count()
    if count == 0:
        return [torch.device("cpu")] * n
    return [torch.device("cuda", i % count) for i in range(n)]
