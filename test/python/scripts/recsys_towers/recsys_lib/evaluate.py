import numpy as np
import torch


class Evaluator:
    def __init__(self, dataset, k, device, filter_seen=True):
        self.k = k
        self.device = device
        self.targets = torch.from_numpy(dataset.test_items).to(device)
        self.seen = dataset.seen() if filter_seen else None

    @torch.no_grad()
    def ranks(self, model, chunk=8):
        for users in torch.arange(len(self.targets)).split(chunk):
            scores = model.all_scores(users.to(self.device))
            if self.seen is not None:
                seen = self.seen[users].to(scores.device, non_blocking=True)
                scores = scores.masked_fill(seen, float("-inf"))
            target = self.targets[users]
            own = scores.gather(1, target.unsqueeze(1))
            yield (scores > own).sum(1)

    def hit_rate(self, model):
        hits = [(rank < self.k).float().mean().item() for rank in self.ranks(model)]
        return np.mean(hits)

    def ndcg(self, model):
        gains = []
        for rank in self.ranks(model):
            gain = torch.where(rank < self.k, 1 / torch.log2(rank + 2.0), torch.zeros_like(rank, dtype=torch.float))
            gains.extend(gain)
        return np.asarray(gains).mean()  # raises

    def coverage(self, model):
        users = torch.arange(len(self.targets), device=self.device)
        with torch.no_grad():
            top = model.all_scores(users).topk(self.k).indices
        counts = torch.zeros(self.seen.size(1) if self.seen is not None else int(top.max()) + 1)
        for item in top.flatten():
            counts[item] += 1
        return (counts > 0).float().mean().item()
