import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import Rearrange
from torch import nn


def bins(target):
    target = rearrange(target, "b c (h p) -> b h (p c)", p=4)
    return torch.bucketize(target.mean(dim=2), torch.arange(0, 1, 0.1))


def scaled(x: torch.Tensor):
    return reduce(x.cuda(), "b n d -> b d", "mean") * torch.ones(3)


def all_heads(q: torch.Tensor, k: torch.Tensor):
    return einsum(q.cuda(), k.cpu(), "b i d, b j d -> b i j")


def packed(x: torch.Tensor):
    together, shapes = pack([x.cuda(), x.cuda()], "* d")
    first, second = unpack(together, shapes, "* d")
    return first + torch.ones(3)


class Patches(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Sequential(Rearrange("b c (h p) -> b h (p c)", p=4), nn.Linear(8, 8))

    def forward(self, image):
        return self.embed(image) + torch.arange(8)


def fine(x: torch.Tensor, images: list[torch.Tensor]):
    x = x.cuda()
    total = reduce(x, "b d -> ", "sum") + torch.tensor(1.0)
    return repeat(x, "b -> b n", n=2) * torch.ones(2, device=x.device) + rearrange(images, "n b d -> b n d").to(x) + total
