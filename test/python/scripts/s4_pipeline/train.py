import torch
import torch.nn.functional as F

from config import Config
from model import Pipeline


def batches(n, size=6):
    for _ in range(n):
        yield torch.randn(size, 4), torch.randint(0, 5, (size,))


def clip(parameters, max_norm):
    norms = [p.grad.norm().cpu() for p in parameters if p.grad is not None]
    total = torch.stack(norms).norm()
    coef = (max_norm / (total + 1e-6)).clamp(max=1.0)
    for p in parameters:
        if p.grad is not None:
            p.grad.mul_(coef.to(p.grad.device))
    return total


def main():
    cfg = Config()
    model = Pipeline(cfg)
    opt = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9)
    running = torch.zeros((), device=cfg.last)
    for step, (x, y) in enumerate(batches(3)):
        logits, aux = model(x)
        loss = F.cross_entropy(logits, y.to(logits.device)) + 0.01 * aux
        opt.zero_grad()
        loss.backward()
        norm = clip(list(model.parameters()), 1.0)
        opt.step()
        running += loss.detach()
        print(f"step {step} loss {loss.item():.3f} norm {norm.item():.3f}")
    print(running.item() / 3, [int(s.steps) for s in model.stages])


if __name__ == "__main__":
    main()
