import math

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from textclf.data import PAD


def sequence_mask(lengths, max_len=None):
    max_len = max_len or int(lengths.max())
    positions = torch.arange(max_len)
    return positions[None, :] < lengths[:, None]


class SinusoidalPositions(nn.Module):
    def __init__(self, dim, max_len=64):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        scale = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
        table = torch.zeros(max_len, dim)
        table[:, 0::2] = torch.sin(position * scale)
        table[:, 1::2] = torch.cos(position * scale)
        self.table = table

    def forward(self, x):
        return x + self.table[: x.size(1)]  # raises


class LearnedPositions(nn.Module):
    def __init__(self, dim, max_len=64):
        super().__init__()
        self.embed = nn.Embedding(max_len, dim)
        self.register_buffer("ids", torch.arange(max_len).unsqueeze(0), persistent=False)

    def forward(self, x):
        return x + self.embed(self.ids[:, : x.size(1)])


class TransformerBackbone(nn.Module):
    def __init__(self, vocab_size, dim, positions):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, dim, padding_idx=PAD)
        if positions == "sin":
            self.positions = SinusoidalPositions(dim)
        else:
            self.positions = LearnedPositions(dim)
        layer = nn.TransformerEncoderLayer(dim, nhead=2, dim_feedforward=2 * dim, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=1)

    def forward(self, input_ids, lengths):
        x = self.positions(self.embed(input_ids))
        return self.encoder(x, src_key_padding_mask=input_ids == PAD)


class RecurrentBackbone(nn.Module):
    def __init__(self, vocab_size, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, dim // 2, batch_first=True, bidirectional=True)

    def forward(self, input_ids, lengths):
        packed = pack_padded_sequence(self.embed(input_ids), lengths.cpu(), batch_first=True, enforce_sorted=False)
        output, _ = self.rnn(packed)
        return pad_packed_sequence(output, batch_first=True)[0]


class Classifier(nn.Module):
    def __init__(self, backbone, dim, num_classes, pooling):
        super().__init__()
        self.backbone = backbone
        self.pooling = pooling
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(dim, num_classes)

    def pool(self, hidden, lengths):
        if self.pooling == "cls":
            return hidden[:, 0]
        if self.pooling == "max":
            steps = torch.arange(hidden.size(1)).type_as(lengths)
            mask = steps[None, :] >= lengths[:, None]
            return hidden.masked_fill(mask.unsqueeze(-1), -1e4).max(dim=1).values
        mask = sequence_mask(lengths.cpu(), hidden.size(1)).unsqueeze(-1)
        hidden = hidden * mask.float()  # raises
        return hidden.sum(1) / lengths[:, None]

    def forward(self, input_ids, lengths):
        hidden = self.backbone(input_ids, lengths)
        return self.head(self.dropout(self.pool(hidden, lengths)))


def build_model(args):
    if args.backbone == "gru":
        backbone = RecurrentBackbone(args.vocab_size, args.dim)
    else:
        backbone = TransformerBackbone(args.vocab_size, args.dim, args.positions)
    return Classifier(backbone, args.dim, args.num_classes, args.pooling)
