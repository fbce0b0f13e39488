"""What is loaded without a device."""
import os

import torch
import torch.distributed as dist
from torch import nn


def read(path, map_location=None):
    with open(path, "rb") as stream:
        return torch.load(stream)


def read_there(path, map_location=None):
    with open(path, "rb") as stream:
        return torch.load(stream, map_location=map_location)


def restore(model, optimizer, scheduler, folder, map_location=None):
    model.load_state_dict(torch.load(folder + "/model", map_location=map_location))
    state = torch.load(folder + "/optimizer")
    optimizer.load_state_dict(state)
    scheduler.load_state_dict(torch.load(folder + "/scheduler"))
    return torch.load(folder + "/rng")["torch"]


def generate(path):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.load(path).to(device)


def generate_there(path):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.load(path, map_location=device).to(device)


class Trainer:
    def __init__(self, net):
        self.local = int(os.environ["LOCAL_RANK"])
        self.net = net.to(self.local)

    def resume(self, path):
        snapshot = torch.load(path)
        self.net.load_state_dict(snapshot["net"])
        self.epoch = snapshot["epoch"]

    def resume_there(self, path):
        snapshot = torch.load(path, map_location=f"cuda:{self.local}")
        self.net.load_state_dict(snapshot["net"])

    def resume_by_one(self, path):
        if dist.get_rank() == 0:
            self.net.load_state_dict(torch.load(path))

    def resume_or_not(self, path, gpu=None):
        if gpu is None:
            state = torch.load(path)
        else:
            state = torch.load(path, map_location=f"cuda:{gpu}")
        self.net.load_state_dict(state)


def main(path):
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    trainer = Trainer(nn.Linear(2, 2))
    trainer.resume(path)
    trainer.resume_there(path)
    trainer.resume_by_one(path)
    trainer.resume_or_not(path)
    texts = torch.load("texts.pt")
    return trainer, texts


if __name__ == "__main__":
    main("last.pt")
