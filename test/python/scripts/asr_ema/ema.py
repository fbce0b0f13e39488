from copy import deepcopy

import torch


class ModelEMA:
    """keeps a smoothed copy; the counter sits in a tensor to be saved with it"""

    def __init__(self, model, decay=.999, device=None):
        self.module = deepcopy(model).eval()
        for p in self.module.parameters():
            p.requires_grad_(False)
        self.decay = decay
        self.updates = torch.tensor(0)
        if device is not None:
            self.module.to(device)

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        d = min(self.decay, (1 + self.updates.item()) / (10 + self.updates.item()))
        for e, m in zip(self.module.state_dict().values(), model.state_dict().values()):
            if e.dtype.is_floating_point:
                e.copy_(d * e + (1 - d) * m.to(e.device))

    def to(self, device):
        self.module.to(device)

    def state_dict(self):
        return {"module": self.module.state_dict(), "updates": self.updates, "decay": self.decay}

    def load_state_dict(self, sd):
        self.module.load_state_dict(sd["module"])
        self.updates, self.decay = sd["updates"], sd["decay"]
