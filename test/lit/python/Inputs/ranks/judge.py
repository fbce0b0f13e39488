"""What another program has trained is used on a machine that may have no GPU."""
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def restored(path):
    net = nn.Linear(2, 2)
    net.load_state_dict(torch.load(path))
    return net.to(device)


def restored_there(path):
    net = nn.Linear(2, 2)
    net.load_state_dict(torch.load(path, map_location=device))
    return net.to(device)


def texts(path):
    return torch.load(path)
