import torch
from left_behind import *  # noqa: F401,F403


def net():
    return torch.nn.Linear(3, 4)


PAIRS = [(torch.randn(5, 3), torch.randint(0, 4, (5,))) for _ in range(2)]
BATCHES = [{"inputs": x, "labels": y, "mask": torch.ones(5, 4), "weight": 2.0} for x, y in PAIRS]

CALLS = {
    "accuracy": lambda: accuracy(net(), PAIRS, "cuda"),
    "accuracy_on_the_host": lambda: accuracy_on_the_host(net(), PAIRS, "cuda"),
    "accuracy_of_moved": lambda: accuracy_of_moved(net(), PAIRS, "cuda"),
    "class_of_each": lambda: class_of_each(net(), [(torch.randn(5, 3), 2)], "cuda"),
    "loss": lambda: Evaluator(net()).loss(BATCHES),
    "masked": lambda: Evaluator(net()).masked(BATCHES),
    "weighted": lambda: Evaluator(net()).weighted(BATCHES),
    "counted": lambda: Evaluator(net()).counted(BATCHES),
    "confusion": lambda: Evaluator(net()).confusion(BATCHES, 4),
    "of_its_device": lambda: of_its_device({torch.device("cuda:1"): torch.ones(3, device="cuda:1")},
                                           torch.ones(3, device="cuda:1")),
}
