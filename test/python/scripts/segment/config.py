from dataclasses import dataclass, field
from typing import List, Optional

import torch


@dataclass
class TrainConfig:
    image_size: int = 8
    num_classes: int = 3
    batch_size: int = 4
    epochs: int = 1
    lr: float = 1e-2
    ignore_index: int = 255
    class_weights: List[float] = field(default_factory=lambda: [0.5, 1.0, 2.0])
    boundary_weight: float = 0.3
    device: Optional[str] = None

    def resolve_device(self) -> torch.device:
        if self.device is not None:
            return torch.device(self.device)
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
