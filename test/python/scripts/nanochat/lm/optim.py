import math

import torch


def make_optimizer(params, cfg):
    decay = [p for p in params if p.dim() >= 2 and p.requires_grad]
    rest = [p for p in params if p.dim() < 2 and p.requires_grad]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=cfg.lr)


def cosine_lr(step, cfg, floor=0.1):
    t = step / max(1, cfg.steps)
    return cfg.lr * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * t)))
