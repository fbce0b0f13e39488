import torch
import torch.nn as nn

from nmt.decoder import Decoder
from nmt.encoder import Encoder


class SplitTranslator(nn.Module):
    """Encoder on one device, decoder on another."""

    def __init__(self, vocab, dim, devices, attention="dot", bridge=False):
        super().__init__()
        self.first, self.second = devices
        self.encoder = Encoder(vocab, dim).to(self.first)
        self.decoder = Decoder(vocab, dim, attention).to(self.second)
        self.bridge = nn.Linear(dim, dim).to(self.first) if bridge else None

    def encode(self, source):
        memory, state, padding = self.encoder(source.to(self.first))
        memory, padding = memory.to(self.second), padding.to(self.second)
        state = state.to(self.second)
        if self.bridge is not None:
            state = torch.tanh(self.bridge(state))  # raises
        return memory, state, padding

    def forward(self, source, target):
        memory, state, padding = self.encode(source)
        logits, _ = self.decoder(target.to(self.second), state, memory, padding)
        return logits


class Coverage:
    """Running sum of what was produced, by token; used to penalise repeats."""

    def __init__(self, vocab, strength):
        self.strength = strength
        self.counts = torch.zeros(vocab)

    def __call__(self, logits, previous):
        if self.counts.device != logits.device:
            self.counts = self.counts.to(logits.device)
        self.counts.index_add_(0, previous.flatten(), torch.ones_like(previous.flatten(), dtype=torch.float))
        return logits - self.strength * self.counts
