import torch
import torch.nn.functional as F

from dist_utils import is_main, reduce_mean


def train_one_epoch(model, loader, optimizer, device, epoch):
    model.train()
    loader.sampler.set_epoch(epoch)
    for i, (x, y) in enumerate(loader):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        logged = reduce_mean(loss)
        if is_main():
            print(f"[{epoch}] {i} {logged.item():.3f}", flush=True)


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    correct, seen = 0, 0
    for x, y in loader:
        pred = model(x.to(device)).argmax(1)
        correct += (pred == y.to(device)).sum().item()
        seen += y.numel()
    accuracy = reduce_mean(torch.tensor(correct / max(seen, 1)))
    return accuracy.item()
