"""Stages of the sequence model, and the pipeline that holds them on their devices."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class EmbedStage(nn.Module):
    def __init__(self, vocab, width):
        super().__init__()
        self.tokens = nn.Embedding(vocab, width)
        self.mix = nn.Conv1d(width, width, 3, padding=1)
        self.balance = None

    def forward(self, idx, skip=None):
        x = self.tokens(idx)
        x = x + F.gelu(self.mix(x.transpose(1, 2)).transpose(1, 2))
        # keeps the activations from drifting, added to the loss by the trainer
        self.balance = x.pow(2).mean()
        return x


class MixerStage(nn.Module):
    def __init__(self, width, length):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.over_time = nn.Linear(length, length)
        self.fuse = nn.Linear(2 * width, width)
        self.balance = None

    def forward(self, x, skip=None):
        if skip is not None:
            x = self.fuse(torch.cat([x, skip], dim=-1))
        y = self.over_time(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return x + F.gelu(y)


class HeadStage(nn.Module):
    def __init__(self, width, vocab):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.proj = nn.Linear(width, vocab, bias=False)
        self.external = None
        self.fuse = nn.Linear(2 * width, width)
        self.balance = None

    def tie(self, embedding):
        """Share the matrix of the first stage; its own is dropped."""
        del self.proj
        self.external = [embedding]

    def forward(self, x, skip=None):
        if skip is not None:
            x = self.fuse(torch.cat([x, skip], dim=-1))  # raises
        x = self.norm(x)
        if self.external is not None:
            return F.linear(x, self.external[0].weight)  # raises
        return self.proj(x)


class Pipeline:
    """Stages on devices; activations are moved where a boundary is crossed."""

    def __init__(self, stages, devices, skips=()):
        assert len(stages) == len(devices)
        self.devices = [torch.device(d) for d in devices]
        self.stages = [s.to(d) for s, d in zip(stages, self.devices)]
        self.skips = set(skips)

    def run_stage(self, i, x, skip=None):
        return self.stages[i](x.to(self.devices[i], non_blocking=True), skip)

    def parameters(self):
        seen = set()
        for stage in self.stages:
            for p in stage.parameters():
                if p not in seen:
                    seen.add(p)
                    yield p

    def balances(self):
        return [s.balance for s in self.stages if s.balance is not None]

    @property
    def last(self):
        return self.devices[-1]
