import io
import random

import torch


def optimizer_to(optimizer, device):
    for state in optimizer.state.values():
        for key, value in state.items():
            if torch.is_tensor(value) and key != "step":
                state[key] = value.to(device)


def save(model, optimizer, step, best):
    stream = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "best": best, "rng": torch.get_rng_state(),
                "py": random.getstate()}, stream)
    stream.seek(0)
    return stream


def restore(stream, model, optimizer, device):
    state = torch.load(stream, map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    optimizer_to(optimizer, device)
    torch.set_rng_state(state["rng"])
    random.setstate(state["py"])
    return state["step"], state["best"].to(device)
