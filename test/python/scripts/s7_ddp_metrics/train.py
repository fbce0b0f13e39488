import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import distributed as D


def main():
    device = D.setup()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(device)
    ddp = DDP(model, device_ids=[device.index] if device.type == "cuda" else None)
    data = TensorDataset(torch.randn(16, 4), torch.randint(0, 2, (16,)))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    opt = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        total = 0.0
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            loss = F.cross_entropy(ddp(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        mean = D.reduce_mean(total / len(loader))
        if D.is_main():
            print(f"epoch {epoch} loss {mean:.3f}")
    D.cleanup()


if __name__ == "__main__":
    main()
