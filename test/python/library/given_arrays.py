"""What a caller passes may be a list, an array or a tensor: what is done behind a conversion does not tell."""
import numpy as np
import torch
from torch import Tensor, nn


def embedding_of(vector, cuda=False, device="cpu"):
    if cuda:
        device = "cuda"
    if vector is not None:
        vector = np.asarray(vector)
        vector = torch.from_numpy(vector).float()
        vector = vector.squeeze().unsqueeze(0).to(device)
    return vector


class Voices(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.project = nn.Linear(size, size)

    @torch.no_grad()
    def speak(self, vector=None, use_cuda=False):
        device = next(self.parameters()).device
        if use_cuda:
            device = "cuda"
        if vector is not None:
            vector = embedding_of(vector, device=device)
        return self.project(vector)


def check_sizes(boxes, dataset, scale: float):
    shapes = scale * dataset.shapes / dataset.shapes.max(1, keepdims=True)
    sizes = np.concatenate([label[:, 3:5] * shape for shape, label in zip(shapes, dataset.labels)])
    widest = torch.tensor(sizes.max(0), device=boxes.device)
    return boxes.cpu().view(-1, 2), widest


def scores_of(scores: Tensor):
    best = scores.max(-1).values
    return np.asarray(best)  # raises


def weights_of(weights, logits: Tensor) -> Tensor:
    weights = torch.as_tensor(weights)
    weights = weights.view(1, -1).clamp(min=0)
    return logits * weights  # raises
