import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Encoder(nn.Module):
    def __init__(self, n_in, hidden, keep_state=False):
        super().__init__()
        self.hidden = hidden
        self.conv = nn.Sequential(nn.Conv1d(n_in, hidden, 3, padding=1), nn.ReLU())
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.keep_state = keep_state
        self.state = None

    def reset(self):
        self.state = None

    def initial(self, batch):
        return self.rnn.weight_ih_l0.new_zeros(1, batch, self.hidden)

    def forward(self, x, lengths):
        x = self.conv(x.transpose(1, 2)).transpose(1, 2)
        state = self.initial(len(x)) if self.state is None else self.state
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, state = self.rnn(packed, state)
        if self.keep_state:
            self.state = state.detach()
        return pad_packed_sequence(out, batch_first=True)


class AttentionPool(nn.Module):
    """Scores over the frames for the whole utterance (language of the speaker)."""

    def __init__(self, hidden, classes):
        super().__init__()
        self.score = nn.Linear(hidden, 1)
        self.out = nn.Linear(hidden, classes)

    def forward(self, enc, lengths):
        steps = torch.arange(enc.size(1))
        pad = steps[None] >= lengths[:, None]
        logits = self.score(enc).squeeze(-1)
        weights = logits.masked_fill(pad.to(logits.device), -1e4).softmax(-1)
        return self.out(torch.einsum('bt,bth->bh', weights, enc))


class Recogniser(nn.Module):
    def __init__(self, frontend, n_mels, hidden, vocab, speakers=0, keep_state=False):
        super().__init__()
        self.frontend = nn.ModuleDict(frontend)
        self.encoder = Encoder(n_mels, hidden, keep_state)
        self.out = nn.Linear(hidden, vocab)
        self.speaker = AttentionPool(hidden, speakers) if speakers else None

    def forward(self, wave, samples):
        if 'emphasis' in self.frontend:
            wave = self.frontend['emphasis'](wave)
        feats = self.frontend['mel'](wave)
        if 'mask' in self.frontend:
            feats = self.frontend['mask'](feats)
        lengths = self.frontend['mel'].lengths(samples)
        enc, lengths = self.encoder(feats, lengths)
        logp = self.out(enc).log_softmax(-1)
        return logp, lengths, (self.speaker(enc, lengths) if self.speaker is not None else None)
