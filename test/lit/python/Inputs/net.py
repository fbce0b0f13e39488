import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
        self.scale = torch.ones(3)

    def forward(self, x):
        return self.fc(x) * self.scale


def train(device="cuda"):
    net = Net().to(device)
    x = torch.rand(2, 4)
    x.to("cuda")
    return net(x)


def add():
    x = torch.rand(3, device="cuda:1")
    y = torch.ones(3)
    return x + y


def quiet():
    x = torch.rand(3, device="cuda:1")
    return x + torch.ones(3)  # noqa: device-mixed-op


def host():
    return torch.rand(3, device="cuda").numpy()


if __name__ == "__main__":
    net = Net().to("cuda")
    net(torch.rand(2, 4, device="cuda"))
