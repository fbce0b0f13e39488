import numpy as np
import torch


@torch.no_grad()
def recall_at_k(model, loader, device, k):
    pairs = [(model(x.to(device)), y) for x, y in loader]
    features, labels = (torch.cat(column) for column in zip(*pairs))
    similarity = features @ features.t()
    similarity[torch.arange(len(labels)), torch.arange(len(labels))] = -2.0
    nearest = similarity.topk(k, dim=1).indices.cpu().numpy()
    labels = labels.numpy()
    return float(np.mean([(labels[row] == y).any() for row, y in zip(nearest, labels)]))
