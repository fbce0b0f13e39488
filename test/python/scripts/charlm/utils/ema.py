import contextlib

import torch


class Shadow:
    """Averages of the weights, kept on the host."""

    def __init__(self, model, decay=0.9, device="cpu"):
        self.decay, self.device = decay, device
        self.values = {n: p.detach().to(device, copy=True) for n, p in model.named_parameters()}

    @torch.no_grad()
    def step(self, model):
        for n, p in model.named_parameters():
            mine = self.values[n]
            mine.add_((p.detach().to(mine.device) - mine) * (1 - self.decay))

    @contextlib.contextmanager
    def applied(self, model):
        saved = {n: p.detach().clone() for n, p in model.named_parameters()}
        try:
            with torch.no_grad():
                for n, p in model.named_parameters():
                    p.copy_(self.values[n])
            yield
        finally:
            for n, p in model.named_parameters():
                p.data = saved[n]
