"""Helpers for two stage training: freeze, restore, discriminative learning rates."""
import torch


def save_backbone(model, path):
    torch.save({"backbone": model.backbone.state_dict()}, path)


def load_backbone(model, path):
    state = torch.load(path, map_location="cpu")
    model.backbone.load_state_dict(state["backbone"])


def freeze(module):
    for parameter in module.parameters():
        parameter.requires_grad_(False)


def param_groups(model, lr, decay=0.1):
    head = [p for name, p in model.named_parameters() if name.startswith("head")]
    rest = [p for name, p in model.named_parameters() if not name.startswith("head")]
    return [{"params": head, "lr": lr}, {"params": rest, "lr": lr * decay}]


class L2SP:
    """Keeps fine-tuned weights close to where they started."""

    def __init__(self, model, strength):
        self.strength = strength
        self.anchor = {name: p.detach().clone() for name, p in model.named_parameters()}

    def __call__(self, model):
        penalty = 0.0
        for name, parameter in model.named_parameters():
            penalty = penalty + (parameter - self.anchor[name]).pow(2).sum()
        return self.strength * penalty
