import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from .augment import GlobalNorm, SpecAugment, UtteranceNorm, length_mask
from .frontend import build_frontend


class ConvEncoder(nn.Module):
    def __init__(self, cin, hidden):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv1d(cin, hidden, 3, padding=1), nn.ReLU(),
                                    nn.Conv1d(hidden, hidden, 3, padding=1), nn.ReLU())

    def forward(self, x, lengths):
        mask = length_mask(lengths, x.size(1)).to(x.device)
        return self.layers((x * mask[..., None]).transpose(1, 2)).transpose(1, 2)


class LSTMEncoder(nn.Module):
    def __init__(self, cin, hidden):
        super().__init__()
        self.rnn = nn.LSTM(cin, hidden // 2, bidirectional=True, batch_first=True)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True)  # raises
        out, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True, total_length=x.size(1))
        return out


class Recognizer(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.frontend = build_frontend(s)
        self.norm = UtteranceNorm() if s.cmvn == 'utterance' else GlobalNorm(s.mel_bins)
        self.augment = SpecAugment(s.specaug)
        self.encoder = {'conv': ConvEncoder, 'lstm': LSTMEncoder}[s.encoder](s.mel_bins, s.hidden)
        self.output = nn.Linear(s.hidden, s.tokens)

    def forward(self, batch):
        x = self.frontend(batch.waves)
        lengths = self.frontend.out_lengths(batch.lengths)
        x = self.augment(self.norm(x, lengths), lengths)
        return self.output(self.encoder(x, lengths)).log_softmax(-1), lengths
