"""Recall and NDCG at k."""
import numpy as np
import torch


class Metrics:
    def __init__(self, k, device):
        self.k = k
        self.discount = 1.0 / torch.log2(torch.arange(2, k + 2).float())
        self.ideal = self.discount.cumsum(0)
        self.hits_at = torch.zeros(k, device=device)
        self.sums = {"recall": 0.0, "ndcg": 0.0}
        self.count = 0

    def add(self, top, truth):
        """`top` (users, k) as ranked, `truth` a list of arrays of items."""
        hits = np.stack([np.isin(row, items) for row, items in zip(top.cpu().numpy(), truth)])
        hits = torch.from_numpy(hits).float()
        sizes = torch.tensor([len(items) for items in truth])
        self.hits_at += hits.sum(0).to(self.hits_at)
        self.sums["recall"] += (hits.sum(1) / sizes.clamp(max=self.k)).sum().item()
        gain = (hits * self.discount).sum(1)
        self.sums["ndcg"] += (gain / self.ideal[sizes.clamp(max=self.k) - 1]).sum().item()
        self.count += len(truth)

    def result(self):
        return {name: round(value / max(1, self.count), 4) for name, value in self.sums.items()}


@torch.no_grad()
def evaluate(model, graph, held_out, k=5, batch=4, keep_seen=False):
    model.eval()
    device = model.weight.device
    metrics = Metrics(k, device)
    everyone = torch.tensor(sorted(held_out))
    coverage = torch.zeros(graph.items, dtype=torch.bool)
    for users in everyone.split(batch):
        scores = model.all_scores(graph, users)
        if not keep_seen:
            for row, user in enumerate(users):
                scores[row, graph.seen_by(user)] = float("-inf")
        top = scores.topk(k, dim=1).indices
        coverage[top.flatten().unique().cpu()] = True
        metrics.add(top, [held_out[u] for u in users.tolist()])
    model.train()
    result = metrics.result()
    result["coverage"] = coverage.float().mean().item()
    return result, metrics.hits_at
