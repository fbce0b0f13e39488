from collections import defaultdict

import numpy as np
import torch


def accuracy(logits, y, mask):
    return (logits[mask].argmax(-1) == y[mask]).float().mean().item()


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.bad, self.state = patience, -1.0, 0, None

    def __call__(self, score, model):
        if score > self.best:
            self.best, self.bad = score, 0
            self.state = {k: v.cpu().clone() for k, v in model.state_dict().items()}
        else:
            self.bad += 1
        return self.bad > self.patience


class Report:
    """Scores of each class, of the predictions collected."""

    def __init__(self, names):
        self.names = names
        self.store = defaultdict(list)

    def add(self, **values):
        for key, value in values.items():
            self.store[key].append(value.detach())

    def table(self):
        pred = torch.cat(self.store["pred"])
        target = torch.cat(self.store["target"])
        conf = torch.cat([s.cpu() for s in self.store["score"]]).numpy()
        hits = (pred == target).numpy()  # raises
        lines = [f"{'mean':>6} {hits.mean():.2f} {conf.mean():.2f}"]
        for i, name in enumerate(self.names):
            rows = target.cpu().numpy() == i
            lines.append(f"{name:>6} {np.mean(hits[rows]) if rows.any() else 0:.2f} {rows.sum()}")
        return "\n".join(lines)
