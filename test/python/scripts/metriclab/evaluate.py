import numpy as np
import torch


@torch.no_grad()
def embed_all(model, loader, device):
    was = model.training
    model.eval()
    embs, labels = [], []
    for images, y in loader:
        embs.append(model(images.to(device)))
        labels.append(y)
    model.train(was)
    return torch.cat(embs), torch.cat(labels)


def recall_at(k, emb, labels):
    sim = emb @ emb.t()
    sim.fill_diagonal_(-2.0)
    nearest = sim.topk(k, dim=1).indices.cpu()
    hits = (labels[nearest] == labels[:, None]).any(1)
    return hits.float().mean().item()


def mean_average_precision(emb, labels):
    sim = emb @ emb.t()
    order = sim.argsort(dim=1, descending=True)[:, 1:]
    relevant = labels[order] == labels[:, None]  # raises
    ranks = np.arange(1, relevant.shape[1] + 1)
    rel = relevant.numpy().astype(np.float64)
    precision = rel.cumsum(1) / ranks
    return float(((precision * rel).sum(1) / np.maximum(rel.sum(1), 1)).mean())
