import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from crf import CRF


class Tagger(nn.Module):
    def __init__(self, words, tags, width=16, constrained=False):
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.encode = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.emit = nn.Linear(2 * width, len(tags))
        self.crf = CRF(tags, constrained)

    def emissions(self, batch):
        packed = pack_padded_sequence(self.embed(batch.words), batch.lengths, batch_first=True, enforce_sorted=False)
        hidden, _ = pad_packed_sequence(self.encode(packed)[0], batch_first=True)
        return self.emit(hidden)

    def forward(self, batch):
        emissions = self.emissions(batch)
        return self.crf(emissions, batch.tags, batch.mask.to(emissions.device))

    def predict(self, batch):
        return self.crf.viterbi(self.emissions(batch), batch.lengths)
