import numpy as np
import torch


def accuracy(scores, labels):
    return (scores.argmax(-1).cpu() == labels).float().mean().item()


def calibration_error(scores, labels, bins=4):
    probs = scores.softmax(-1)
    confidence, guess = probs.max(-1)
    right = guess.cpu() == labels
    edges = np.linspace(0, 1, bins + 1)
    levels = np.asarray(confidence, dtype=np.float64)  # raises
    where = np.digitize(levels, edges[1:-1])
    error = 0.0
    for b in range(bins):
        inside = torch.from_numpy(where == b)
        if inside.any():
            gap = right[inside].float().mean() - confidence[inside].mean()
            error += inside.float().mean().item() * abs(gap.item())
    return error
