import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nmt import PAD


class Encoder(nn.Module):
    def __init__(self, vocab, dim, tied=None):
        super().__init__()
        self.embed = tied if tied is not None else nn.Embedding(vocab, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, dim, batch_first=True)

    def forward(self, source):
        lengths = (source != PAD).sum(1)
        packed = pack_padded_sequence(self.embed(source), lengths.tolist(), batch_first=True, enforce_sorted=False)
        output, state = self.rnn(packed)
        memory, _ = pad_packed_sequence(output, batch_first=True)
        return memory, state, source.eq(PAD)
