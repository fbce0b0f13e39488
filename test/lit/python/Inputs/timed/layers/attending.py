import torch
from torch import nn


class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(3, 3)

    def forward(self, x):
        if x.is_cuda:
            torch.cuda.synchronize()
        is_tpu = x.device.type == "xla"
        y = self.proj(x)
        return self.proj(y) if is_tpu else y + torch.zeros(3, device=x.device)
