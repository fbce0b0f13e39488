import torch
from torch import nn
from evalmetrics import *

torch.manual_seed(0)
D = "cuda:0"


def logits(device=D):
    return torch.randn(6, 4, device=device), torch.randint(0, 4, (6,), device=device)


def twice(metric, *data):
    metric.to(D)
    metric(*data)
    value = metric.compute()
    metric.reset()
    metric(*data)
    return value, metric.compute()


def masks():
    return torch.randint(0, 3, (3, 4, 4), device=D), torch.randint(0, 3, (3, 4, 4), device=D)


def scores():
    return torch.rand(8, device=D), torch.tensor([0, 1] * 4, device=D)


def features(count=1, device=D):
    made = [FeatureStatistics(nn.Flatten(), 3).to(device) for _ in range(count)]
    for each in made:
        each.update(torch.randn(9, 3, 1, device=device))
    return made


def replicas():
    return [Accuracy().to(f"cuda:{i}")(*logits(f"cuda:{i}")) for i in range(2)]


def merged():
    first, second = replicas()
    return first.merge([second]).compute()


X, Y = torch.rand(7), torch.rand(7)
CALLS = {
    "accuracy": lambda: twice(Accuracy(2), *logits()),
    "token": lambda: TokenAccuracy().to(D)(*logits()).compute(),
    "token_reset": lambda: twice(TokenAccuracy(), *logits()),
    "confusion": lambda: twice(ConfusionMatrix(3), *masks()),
    "iou": lambda: MeanIoU(3).to(D)(*masks()).iou(),
    "iou_weighted": lambda: MeanIoU(3, [1.0, 2.0, 3.0]).to(D)(*masks()).compute(),
    "worst": lambda: MeanIoU(3).to(D)(*masks()).worst(),
    "best": lambda: MeanIoU(3).to(D)(*masks()).best(),
    "auroc": lambda: twice(BinaryAUROC(), *scores()),
    "ap": lambda: twice(AveragePrecision(), *scores()),
    "ap_numpy": lambda: AveragePrecision().to(D)(*scores()).compute_numpy(),
    "features": lambda: features()[0].compute(),
    "features_net": lambda: FeatureStatistics(nn.Linear(5, 3), 3).to(D)(torch.randn(4, 5, device=D)),
    "frechet": lambda: (lambda a, b: a.frechet(b))(*features(2)),
    "ndcg": lambda: twice(NDCG(3), torch.rand(2, 6, device=D), torch.randint(0, 3, (2, 6), device=D)),
    "ndcg_single": lambda: NDCG(3).to(D).single(torch.tensor([1, 0, 2, 1], device=D)),
    "spearman": lambda: Spearman().to(D)(X.to(D), Y.to(D)).compute(),
    "psnr": lambda: twice(PSNR(), torch.rand(2, 3, 4, 4, device=D), torch.rand(2, 3, 4, 4, device=D)),
    "replicas": lambda: replica_mean(replicas()),
    "merged": merged,
    "gather": lambda: gather_values(torch.ones((), device=D)),
    "summary": lambda: summarize({"a": replicas()[1], "b": replicas()[0]}),
}
