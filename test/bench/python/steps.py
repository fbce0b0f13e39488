"""Training steps of three small models, on a GPU if there is one: prints the fastest of each in milliseconds.

usage: steps.py SECONDS_PER_MODEL
"""

import inspect
import sys
import time

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# PyTorch 1.13 finds it out from the mask.
CAUSAL = {"is_causal": True} if "is_causal" in inspect.signature(nn.TransformerEncoderLayer.forward).parameters else {}


class Gpt(nn.Module):
    """A decoder of 4 layers with attention as torch.nn has it."""

    def __init__(self, words=256, width=128, heads=4, layers=4, length=64):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(layers)
        )
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, words)

    def forward(self, tokens):
        length = tokens.shape[1]
        values = self.words(tokens) + self.positions(torch.arange(length, device=tokens.device))
        mask = torch.full((length, length), float("-inf"), device=tokens.device).triu(1)
        for layer in self.layers:
            values = layer(values, src_mask=mask, **CAUSAL)
        return self.output(self.norm(values)).mean(1)


def mlp():
    layers = nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    return nn.Sequential(*layers), torch.randn(64, 256), 10


def cnn():
    model = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1)),
        *(nn.Flatten(), nn.Linear(32, 10)),
    )
    return model, torch.randn(16, 3, 32, 32), 10


def gpt():
    return Gpt(), torch.randint(256, (4, 64)), 256


def fastest_step(make, seconds):
    model, inputs, classes = make()
    model, inputs = model.to(DEVICE), inputs.to(DEVICE)
    labels = torch.randint(classes, (len(inputs),), device=DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    fastest = float("inf")
    end = time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        fastest = min(fastest, time.perf_counter() - start)
    return 1000 * fastest


if __name__ == "__main__":
    torch.set_num_threads(1)
    for model in (mlp, cnn, gpt):
        print(model.__name__, fastest_step(model, float(sys.argv[1])))
