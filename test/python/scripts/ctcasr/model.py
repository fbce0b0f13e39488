"""Acoustic models with a CTC head."""
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class ConvEncoder(nn.Module):
    def __init__(self, bands, hidden):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(bands, hidden, 3, padding=1), nn.ReLU(), nn.Conv1d(hidden, hidden, 3, padding=1), nn.ReLU()
        )

    def forward(self, x, lengths):
        mask = torch.arange(x.size(1)).to(lengths.device) < lengths[:, None]
        return self.net((x * mask[..., None]).transpose(1, 2)).transpose(1, 2)


class RecurrentEncoder(nn.Module):
    def __init__(self, bands, hidden):
        super().__init__()
        self.rnn = nn.GRU(bands, hidden, batch_first=True)
        self.state = None

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)  # raises
        return pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0]

    def reset(self, batch=1):
        self.state = torch.zeros(self.rnn.num_layers, batch, self.rnn.hidden_size)

    def stream(self, x):
        out, self.state = self.rnn(x, self.state)  # raises
        return out


ENCODERS = {"conv": ConvEncoder, "rnn": RecurrentEncoder}


class Recognizer(nn.Module):
    def __init__(self, frontend, encoder="conv", hidden=16, symbols=9):
        super().__init__()
        self.frontend = frontend
        self.encoder = ENCODERS[encoder](frontend.bands, hidden)
        self.head = nn.Linear(hidden, symbols)

    def forward(self, waves, lengths):
        x, lengths = self.frontend(waves, lengths)
        return self.head(self.encoder(x, lengths)).log_softmax(-1), lengths

    @torch.no_grad()
    def transcribe_stream(self, wave, chunk=128):
        """Chunk by chunk, as from a microphone."""
        self.eval()
        self.encoder.reset()
        pieces = []
        for start in range(0, wave.size(0) - self.frontend.size, chunk):
            spec = self.frontend.spectrum(wave[None, start:start + chunk + self.frontend.size - self.frontend.hop])
            pieces.append(self.head(self.encoder.stream(spec)).log_softmax(-1).cpu())
        return torch.cat(pieces, dim=1)
