"""what an optimizer has loaded, what an index without dimensions takes, sums that calls add to, and shifts"""
import tempfile

import torch
from torch import nn


def saved():
    model = nn.Linear(3, 3)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    path = tempfile.NamedTemporaryFile(suffix=".pt", delete=False).name
    torch.save(optimizer.state_dict(), path)
    return path


def trained(model, optimizer):
    model(torch.ones(2, 3, device="cuda")).sum().backward()
    optimizer.step()  # raises


def case_loaded_before_the_move():
    path = saved()
    model = nn.Linear(3, 3)
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.load_state_dict(torch.load(path, map_location="cpu"))
    model.cuda()
    trained(model, optimizer)


def case_loaded_after_the_move():
    path = saved()
    model = nn.Linear(3, 3)
    optimizer = torch.optim.Adam(model.parameters())
    model.cuda()
    optimizer.load_state_dict(torch.load(path, map_location="cpu"))
    model(torch.ones(2, 3, device="cuda")).sum().backward()
    optimizer.step()


def case_put_by_number():
    x = torch.zeros(4, 3, device="cuda")
    for i in torch.nonzero(torch.ones(4) > 0).flatten():
        x[i, :2] = torch.randn(2)
    return x


def case_put_by_numbers():
    x = torch.zeros(4, 3, device="cuda")
    rows = torch.tensor([0, 2])
    x[rows] = torch.randn(2, 3)  # raises
    return x


class Sums:
    def __init__(self):
        self.sum = None

    def update(self, x):
        if self.sum is None:
            self.sum = torch.zeros(3, device=x.device)
        self.sum += x


def case_sums():
    sums = Sums()
    sums.update(torch.ones(3, device="cuda"))
    sums.update(torch.ones(3, device="cuda"))
    return sums.sum


def case_shifted():
    packed = torch.ones(3, 1, dtype=torch.int64, device="cuda")
    return packed >> torch.tensor([0, 4])  # raises


def case_shifted_by_number():
    packed = torch.ones(3, 1, dtype=torch.int64, device="cuda")
    packed <<= 2
    return packed >> torch.tensor(4)


def bank(bins, size):
    return torch.ones(bins, size) * (size + 1) * torch.ones(1)


class Spectrum(nn.Module):
    def __init__(self, size=4):
        super().__init__()
        self.size = size
        self.register_buffer("window", torch.ones(size))
        self.bank = bank(2, size)

    def forward(self, wave):
        return torch.stft(wave, self.size, window=self.window, return_complex=True)


def case_number_of_a_constructor():
    return Spectrum().cuda()(torch.ones(1, 16, device="cuda"))
