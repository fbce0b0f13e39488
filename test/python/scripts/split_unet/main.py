import torch

import config
from model import SplitUNet
from train import batches, fit


def describe(model):
    per_device = {}
    for name, p in model.named_parameters():
        per_device[str(p.device)] = per_device.get(str(p.device), 0) + p.numel()
    return ", ".join(f"{k}: {v}" for k, v in sorted(per_device.items()))


@torch.no_grad()
def validate(model):
    model.eval()
    scores = []
    for noisy, clean in batches(1, config.BATCH, config.SIZE):
        pred = model(noisy).cpu()
        scores.append(-10 * torch.log10((pred - clean).pow(2).mean()))
    return torch.stack(scores).mean().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    net = SplitUNet(config.WIDTH, config.DEPTH, config.FIRST, config.SECOND)
    print(describe(net))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
    print("psnr before", validate(net))
    net.train()
    print("loss", fit(net, optimizer, batches(config.STEPS, config.BATCH, config.SIZE)))
    print("psnr", validate(net))
