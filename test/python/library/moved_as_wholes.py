"""Modules that are made in parts and moved as wholes, what is brought to them, and numbers and arrays among tensors."""
import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


class Splats(nn.Module):
    """One of its parameters is on a GPU before the module is moved."""

    def __init__(self, points: int):
        super().__init__()
        colors = torch.zeros(points, 3)
        colors = colors.cuda()
        self.parts = nn.ParameterDict({"means": nn.Parameter(torch.rand(points, 3)), "colors": nn.Parameter(colors)})
        self.place = nn.Parameter(torch.empty(0))
        self.weights = torch.ones(points, 1)

    @property
    def device(self):
        return self.place.device

    def loss(self, outputs, batch):
        image = batch["image"].to(self.device)
        mask = batch["mask"].to(self.device)
        return (F.l1_loss(outputs["rgb"], image, reduction="none") * mask).mean()

    def shaded(self, batch):
        image = batch["image"].to(self.device)
        return image * batch["mask"]  # raises

    def forward(self):
        return self.parts["means"] * self.parts["colors"]

    def weighted(self):
        return self.parts["means"] * self.weights  # raises


class Lookup(nn.Module):
    """A part of it puts its own table on a GPU, if it is told to."""

    def __init__(self, size: int, on_gpu: bool = True):
        super().__init__()
        self.table = nn.Embedding(size, 4)
        if on_gpu:
            self.table.to("cuda")

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table(ids)


class Encoder(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.embed = Lookup(size)
        self.norm = nn.LayerNorm(4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.norm(self.embed(ids))


class Model(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.encoder = Encoder(size)
        self.head = nn.Linear(4, 2)
        self.bias = torch.zeros(2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(ids))

    def biased(self, ids: torch.Tensor) -> torch.Tensor:
        return self(ids) + self.bias  # raises


class Gray(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.tensor([[0.3, 0.6, 0.1]]))
        self.offset = torch.ones(1)
        self.gray = lambda rgb: rgb @ self.weight.T
        self.lighter = lambda rgb: rgb @ self.weight.T + self.offset.view(1, 1)  # raises

    def forward(self, rgb: torch.Tensor) -> torch.Tensor:
        return self.gray(rgb)


class Sinusoidal(nn.Module):
    """It makes its table anew when it is too short."""

    def __init__(self, length: int):
        super().__init__()
        self.make(length)

    def make(self, length: int):
        table = torch.arange(length).float()
        if hasattr(self, "table"):
            table = table.to(self.table.device)
        self.table = nn.Parameter(table)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        if ids.size(0) > self.table.size(0):
            self.make(ids.size(0))
        return self.table.index_select(0, ids.view(-1))


class Reparametrised(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.kernel = nn.Parameter(torch.randn(width, width))

    def identity(self):
        device = self.kernel.get_device()
        if device < 0:
            device = None
        return torch.eye(self.kernel.size(0), device=device)

    def merged(self):
        return self.kernel + self.identity()

    def wrongly(self):
        return self.kernel + torch.eye(self.kernel.size(0))  # raises


def sharpened(logits: torch.Tensor, temperature):
    return torch.exp(logits / temperature)


class Teacher(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.backbone = make()

    @torch.no_grad()
    def sinkhorn(self, output, temperature, count):
        q = torch.exp(output.float() / temperature).t()
        return q / count

    def forward(self, images, temperature):
        count = images["count"].cuda()
        output = self.backbone(images["pixels"].cuda())
        return self.sinkhorn(output, temperature, count)


def softmax(x, temperature=1.0):
    e = np.exp((x - np.max(x)) / temperature)
    return e / e.sum()


def kept(probabilities, targets, limit):
    if limit > 0 and probabilities[0].shape[1] > limit:
        targets = targets[0][:, :limit]
    sure = np.max(probabilities[0], axis=1) > 0.5
    return np.logical_and(targets == 1, sure[:, None])


class Metric:
    def update(self, logits: torch.Tensor, targets):
        self.loss = F.cross_entropy(logits, targets)

    @staticmethod
    def overall(predictions, targets):
        targets = np.array(targets)
        return (np.array(predictions) == targets).mean()


def padded(parts, count: int):
    """Lists made of lists, again and again."""
    choices = []
    longest = 0
    for part in parts:
        found = [1, 2, len(part)]
        longest = max(longest, len(found))
        choices.append(found)
    for i in range(len(choices)):
        choices[i] = longest * choices[i]
        choices[i] = choices[i][:longest]
    total = torch.tensor([sum(each) for each in zip(*choices)])
    return total.cuda() + torch.ones(count, device="cuda")
