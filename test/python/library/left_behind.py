"""What a loader gives, in part moved to the device: the labels that stay behind meet what the model has made."""
import torch
import torch.nn.functional as F


def accuracy(model, loader, device):
    model.to(device).eval()
    hits = 0
    for x, y in loader:
        out = model(x.to(device)).argmax(-1)
        hits += (out == y).sum().item()  # raises
    return hits


def accuracy_on_the_host(model, loader, device):
    model.to(device).eval()
    hits = 0
    for x, y in loader:
        out = model(x.to(device)).argmax(-1).cpu()
        hits += (out == y).sum().item()
    return hits


def accuracy_of_moved(model, loader, device):
    model.to(device).eval()
    hits = 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        hits += (model(x).argmax(-1) == y).sum().item()
    return hits


def class_of_each(model, batches, device):
    """The second of each is a number."""
    model.to(device)
    found = []
    for x, label in batches:
        out = model(x.to(device)).argmax(-1)
        found.append((out == int(label)).float().mean().item())
    return found


class Evaluator:
    def __init__(self, model, device="cuda"):
        self.model = model.to(device).eval()
        self.device = device

    def loss(self, loader):
        total = 0.0
        for batch in loader:
            logits = self.model(batch["inputs"].to(self.device))
            total += F.cross_entropy(logits, batch["labels"]).item()  # raises
        return total

    def masked(self, loader):
        total = 0.0
        for batch in loader:
            logits = self.model(batch["inputs"].to(self.device))
            kept = logits.float() * batch["mask"]  # raises
            total += kept.sum().item()
        return total

    def weighted(self, loader):
        total = 0.0
        for batch in loader:
            logits = self.model(batch["inputs"].to(self.device))
            weight = batch["mask"].to(logits.device)
            total += (logits * weight).sum().item() * batch["weight"]
        return total

    def counted(self, loader):
        total, count = 0.0, 0
        for batch in loader:
            total += self.model(batch["inputs"].to(self.device)).sum().item()
            count += batch["labels"].size(0)
        return total / count

    def confusion(self, loader, classes):
        table = torch.zeros(classes, classes)
        for batch in loader:
            guess = self.model(batch["inputs"].to(self.device)).argmax(-1).cpu()
            for a, b in zip(batch["labels"], guess):
                table[a, b] += 1
        return table


def of_its_device(tables, x):
    """What is kept for a device is there."""
    return tables[x.device] + x
