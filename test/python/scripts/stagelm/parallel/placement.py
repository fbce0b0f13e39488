from collections import OrderedDict

import torch


def sizes(model):
    return OrderedDict((name, sum(p.numel() for p in child.parameters())) for name, child in model.named_children())


def flatten_children(model, split=("blocks",)):
    for name, child in model.named_children():
        if name in split:
            for i, sub in enumerate(child):
                yield f"{name}.{i}", sub
        else:
            yield name, child


def balanced_map(model, count):
    parts = list(flatten_children(model))
    total = sum(sum(p.numel() for p in m.parameters()) for _, m in parts)
    placed, device, used = {}, 0, 0
    for name, m in parts:
        if used > total / count * (device + 1) and device < count - 1:
            device += 1
        placed[name] = device
        used += sum(p.numel() for p in m.parameters())
    placed[parts[-1][0]] = count - 1
    return placed


def move(value, device):
    if torch.is_tensor(value):
        return value.to(device)
    if isinstance(value, (tuple, list)):
        return type(value)(move(v, device) for v in value)
    if isinstance(value, dict):
        return {k: move(v, device) for k, v in value.items()}
    return value


def dispatch(model, device_map):
    for name, index in device_map.items():
        module = model.get_submodule(name)
        device = torch.device("cuda", index)
        module.to(device)
        module.register_forward_pre_hook(lambda m, args, d=device: move(args, d))
    model.device_map = device_map
    return model
