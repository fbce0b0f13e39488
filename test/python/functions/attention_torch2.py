"""Needs PyTorch 2: default devices, scaled dot product attention, weights_only loads."""
import io
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def case_factory_context():
    with torch.device("cuda:0"):
        net = nn.Linear(3, 2)
        x = torch.randn(4, 3)
        mask = torch.ones(4, 1)
    return net(x) * mask


def case_factory_context_ended():
    with torch.device("cuda:0"):
        net = nn.Linear(3, 2)
    x = torch.randn(4, 3)
    return net(x)  # raises


def case_default_device_loader():
    torch.set_default_device("cuda")
    data = torch.utils.data.TensorDataset(torch.arange(6.0))
    sampler = torch.utils.data.RandomSampler(data, generator=torch.Generator(device="cuda"))
    for (x,) in torch.utils.data.DataLoader(data, batch_size=2, sampler=sampler):
        x + torch.ones(2)


def case_default_device_numpy():
    torch.set_default_device("cuda:1")
    net = nn.Linear(2, 2)
    host = torch.from_numpy(__import__("numpy").zeros((3, 2), dtype="float32"))
    return net(host)  # raises


class SDPA(nn.Module):
    def __init__(self, dim=8, heads=2):
        super().__init__()
        self.qkv, self.heads = nn.Linear(dim, 3 * dim), heads
        self.mask = torch.ones(16, 16).tril().bool()

    def forward(self, x, causal_by_flag):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        if causal_by_flag:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask[:t, :t])  # raises


def case_sdpa_flag():
    SDPA().cuda()(torch.randn(1, 4, 8).cuda(), True)


def case_sdpa_mask():
    SDPA().cuda()(torch.randn(1, 4, 8).cuda(), False)


def case_meta_then_load():
    buf = io.BytesIO()
    torch.save(nn.Linear(3, 3).state_dict(), buf)
    buf.seek(0)
    with torch.device("meta"):
        net = nn.Linear(3, 3)
    net.load_state_dict(torch.load(buf, map_location="cuda", weights_only=True), assign=True)
    return net(torch.ones(1, 3, device="cuda")) / math.sqrt(3)


def case_where_zero_dim():
    x = torch.randn(4, device="cuda")
    return torch.where(x > 0, x, torch.tensor(0.0))


def case_where_vector():
    x = torch.randn(4, device="cuda")
    return torch.where(x > 0, x, torch.zeros(4))  # raises
