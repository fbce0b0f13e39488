"""Who exchanges tensors without joining the ranks itself."""
import torch
import torch.distributed as dist
from accelerate import Accelerator
from accelerate.utils import gather
from transformers import Trainer


def evaluate(model, loader):
    accelerator = Accelerator()
    model, loader = accelerator.prepare(model, loader)
    total = torch.tensor(0.0)
    seen = torch.zeros(1, device=accelerator.device)
    for batch in loader:
        total += model(batch).sum().item()
        seen += 1
    names = accelerator.gather_for_metrics(["a", "b"], use_gather_object=True)
    seen = accelerator.reduce(seen)
    total = accelerator.gather(total)  # likely
    worst = gather({"worst": torch.ones(2), "seen": seen})  # likely
    return total, seen, names, worst


def on_cpu(values):
    accelerator = Accelerator(cpu=True)
    return accelerator.gather(torch.tensor(values))


class Counting(Trainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.tokens = 0

    def compute_loss(self, model, inputs, return_outputs=False):
        tokens = torch.tensor(inputs["position_ids"].size(1))
        self.tokens += self.accelerator.gather_for_metrics(tokens).sum().item()  # likely
        there = torch.tensor(inputs["position_ids"].size(1), device=inputs["position_ids"].device)
        self.tokens += self.accelerator.gather_for_metrics(there).sum().item()
        return super().compute_loss(model, inputs, return_outputs)


def asks(x):
    counts = torch.tensor([x, 1.0])
    if dist.get_backend() == dist.Backend.GLOO:
        dist.all_reduce(counts)
    else:
        dist.broadcast(counts, 0)  # likely
    return counts


def asks_and_moves(x):
    counts = torch.tensor([x, 1.0])
    if dist.get_backend() == "nccl":
        counts = counts.cuda()
    dist.all_reduce(counts)
    return counts


def on_host(x):
    counts = torch.tensor([x, 1.0]).cpu()
    dist.all_reduce(counts)
    return counts
