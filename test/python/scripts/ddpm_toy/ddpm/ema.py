import torch


class EMA:
    def __init__(self, decay=0.9):
        self.decay, self.shadow, self.backup = decay, {}, {}

    def register(self, model):
        self.shadow = {n: p.data.clone() for n, p in model.named_parameters() if p.requires_grad}

    @torch.no_grad()
    def update(self, model):
        for n, p in model.named_parameters():
            if n in self.shadow:
                self.shadow[n] = self.decay * self.shadow[n] + (1 - self.decay) * p.data

    def apply(self, model):
        for n, p in model.named_parameters():
            if n in self.shadow:
                self.backup[n], p.data = p.data, self.shadow[n]

    def restore(self, model):
        for n, p in model.named_parameters():
            if n in self.backup:
                p.data = self.backup.pop(n)

    def state_dict(self):
        return {"decay": self.decay, "shadow": self.shadow}

    def load_state_dict(self, state, device):
        self.decay = state["decay"]
        self.shadow = {n: v.to(device) for n, v in state["shadow"].items()}
