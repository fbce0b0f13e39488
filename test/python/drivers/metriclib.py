import torch

import metriclib as M

dev = torch.device("cuda:0")
logits = lambda *s: torch.randn(*s, device=dev)
ints = lambda hi, *s: torch.randint(hi, s, device=dev)


def reset_then(metric, *args):
    metric = metric.to(dev)
    metric(*args)
    metric.reset()
    return metric(*args)


CALLS = {
    "accuracy": lambda: reset_then(M.Accuracy(), logits(4, 3), ints(3, 4)),
    "calibration": lambda: M.CalibrationError().to(dev)(logits(4, 3).softmax(1), ints(3, 4)),
    "iou": lambda: M.MeanIoU(3, ignore_index=2).to(dev)(ints(2, 2, 4), ints(3, 2, 4)),
    "pearson": lambda: M.PearsonCorr().to(dev)(logits(5), logits(5)),
    "perplexity": lambda: M.Perplexity().to(dev)(logits(2, 3, 5), ints(5, 2, 3)),
    "map": lambda: M.retrieval_average_precision(logits(4), torch.tensor([0, 1, 0, 1]).to(dev)),
    "mrr": lambda: M.retrieval_reciprocal_rank(logits(4), torch.tensor([0, 1, 0, 1]).to(dev)),
    "ndcg": lambda: M.ndcg(logits(4), ints(3, 4), k=2),
    "spearman": lambda: M.spearman(logits(5), logits(5)),
    "bootstrap": lambda: M.bootstrap_ci(logits(5)),
    "roc_auc": lambda: M.roc_auc(logits(5), ints(2, 5)),
}
