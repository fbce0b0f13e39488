import torch


@torch.no_grad()
def scores(flow, loader, device):
    """Negative log likelihoods, gathered on the host."""
    flow.eval()
    found, labels = [], []
    for x, y in loader:
        found.append(-flow.log_prob(x.to(device)).cpu())
        labels.append(y)
    return torch.cat(found), torch.cat(labels)


def auroc(score, label):
    order = score.argsort()
    rank = torch.empty_like(order)
    rank[order] = torch.arange(1, len(order) + 1)
    positive = label == 1
    p, n = int(positive.sum()), int((~positive).sum())
    return (float(rank[positive].sum()) - p * (p + 1) / 2) / (p * n)


class Alarm:
    """Says which rows are less likely than all but a part of what is normal."""

    def __init__(self, rate=0.02):
        self.rate = rate
        self.level = None

    def calibrate(self, normal_scores):
        self.level = torch.quantile(normal_scores, 1 - self.rate)
        return self

    def __call__(self, score):
        return score > self.level
