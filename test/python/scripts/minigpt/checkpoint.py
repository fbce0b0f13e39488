"""Saving and resuming, and the average of the weights that is saved beside them."""
import io

import torch


class WeightAverage:
    def __init__(self, model, decay):
        self.decay = decay
        self.updates = 0
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for name, p in model.named_parameters():
            self.shadow[name].mul_(decay).add_(p, alpha=1 - decay)  # raises

    def state_dict(self):
        return {"decay": self.decay, "updates": self.updates, "shadow": self.shadow}

    def load_state_dict(self, state):
        self.decay = state["decay"]
        self.updates = state["updates"]
        self.shadow = state["shadow"]


def save(target, step, model, optimizer, average=None):
    torch.save(
        {
            "step": step,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "average": average.state_dict() if average else None,
            "rng": torch.get_rng_state(),
        },
        target,
    )


def resume(source, model, optimizer, average=None):
    if isinstance(source, io.BytesIO):
        source.seek(0)
    state = torch.load(source, map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    if average is not None and state["average"] is not None:
        average.load_state_dict(state["average"])
    torch.set_rng_state(state["rng"])
    return state["step"]
