from pathlib import Path

import torch


def save(folder, model, optimizer, epoch, best):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "last.pt"
    torch.save({
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epoch": epoch,
        "best": best,
    }, path)
    return path


def load(path, model, optimizer=None):
    saved = torch.load(path, map_location="cpu")
    model.load_state_dict(saved["model"])
    if optimizer is not None:
        optimizer.load_state_dict(saved["optimizer"])
    return saved["epoch"] + 1, saved["best"]
