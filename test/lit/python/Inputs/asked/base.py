import torch
from somewhere import Base, Model

try:
    import other
except ImportError:
    other = None


class Sampler(Base):
    """What a class of a library that is not known has set."""

    def steps(self, n):
        when = torch.full((n,), 4, device=self.accelerator.device)
        return torch.arange(n) <= when

    def kept(self, n):
        when = torch.full((n,), 4, device=self.accelerator.device)
        return torch.arange(n, device=when.device) <= when


def layer(x):
    return torch.nn.Linear(3, 3)(x)


def noted(init):
    def start(self, *values, **options):
        self.note(**options)
        init(self, *values, **options)

    return start


class Net(Model, torch.nn.Module):
    @noted
    def __init__(self, size: int = 4):
        super().__init__()
        self.fc = torch.nn.Linear(size, size)
        self.shift = torch.zeros(size)

    def forward(self, x):
        return self.fc(x) + self.shift
