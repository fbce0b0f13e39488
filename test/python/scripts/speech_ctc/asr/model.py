import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from asr.features import SpecAugment


class ConvEncoder(nn.Module):
    def __init__(self, mels, hidden):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(mels, hidden, 3, padding=1),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Conv1d(hidden, hidden, 3, padding=1),
        )

    def forward(self, x, lengths):
        hidden = self.net(x.transpose(1, 2)).transpose(1, 2)
        steps = torch.arange(hidden.size(1), device=lengths.device)
        mask = (steps[None] < lengths[:, None]).to(hidden.device)
        return hidden * mask.unsqueeze(-1)


class LstmEncoder(nn.Module):
    def __init__(self, mels, hidden):
        super().__init__()
        self.rnn = nn.LSTM(mels, hidden // 2, bidirectional=True, batch_first=True)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)  # raises
        output, _ = self.rnn(packed)
        return pad_packed_sequence(output, batch_first=True, total_length=x.size(1))[0]


ENCODERS = {"conv": ConvEncoder, "lstm": LstmEncoder}


class CtcModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.augment = SpecAugment(config.augment)
        self.encoder = ENCODERS[config.encoder](config.features.mels, config.hidden)
        self.output = nn.Linear(config.hidden, len(config.alphabet))

    def forward(self, features, lengths):
        hidden = self.encoder(self.augment(features), lengths)
        return self.output(hidden).log_softmax(-1)
