import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from dist_utils import gather_objects, is_main, setup
from engine import evaluate, train_one_epoch
from model import ResidualMLP


def make_loader(n, shuffle):
    g = torch.Generator().manual_seed(n)
    ds = TensorDataset(torch.randn(n, 6, generator=g), torch.randint(0, 3, (n,), generator=g))
    return DataLoader(ds, batch_size=4, sampler=DistributedSampler(ds, shuffle=shuffle), pin_memory=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=1)
    ap.add_argument("--sync-bn", action="store_true")
    args = ap.parse_args()
    rank, local_rank, world = setup()
    device = torch.device("cuda", local_rank)
    torch.manual_seed(rank)

    model = ResidualMLP().to(device)
    if args.sync_bn:
        model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)
    model = DDP(model, device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train_loader, val_loader = make_loader(16, True), make_loader(8, False)
    for epoch in range(args.epochs):
        train_one_epoch(model, train_loader, optimizer, device, epoch)
        names = gather_objects(f"rank {rank}")
        acc = evaluate(model, val_loader, device)
        if is_main():
            print(names, acc)
            torch.save(model.module.state_dict(), "ddp_classify.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
