import argparse
import os
import tempfile

import torch
import torch.multiprocessing as mp
from torch.distributed import destroy_process_group, init_process_group
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from datautils import RandomTrainDataset
from trainer import Trainer


def ddp_setup(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ.setdefault("MASTER_PORT", "29655")
    torch.cuda.set_device(rank)
    init_process_group(backend="nccl", rank=rank, world_size=world_size)


def load_train_objs():
    model = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    return RandomTrainDataset(16), model, torch.optim.Adam(model.parameters(), lr=1e-3)


def main(rank, world_size, epochs, path):
    ddp_setup(rank, world_size)
    dataset, model, optimizer = load_train_objs()
    loader = DataLoader(dataset, batch_size=4, pin_memory=True, shuffle=False, sampler=DistributedSampler(dataset))
    best = Trainer(model, loader, optimizer, rank, path).train(epochs)
    dataset, model, optimizer = load_train_objs()
    again = Trainer(model, loader, optimizer, rank, path)
    again.train(epochs + 1)
    if rank == 0:
        print("best", best)
    destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--world", type=int, default=2)
    ap.add_argument("--epochs", type=int, default=2)
    a = ap.parse_args()
    snapshot = os.path.join(tempfile.mkdtemp(), "snapshot.pt")
    mp.spawn(main, args=(a.world, a.epochs, snapshot), nprocs=a.world)
