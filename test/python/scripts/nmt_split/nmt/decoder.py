import torch
import torch.nn as nn

from nmt import PAD


class DotAttention(nn.Module):
    def forward(self, query, memory, padding):
        scores = query @ memory.transpose(1, 2)
        scores = scores.masked_fill(padding.unsqueeze(1), -1e9)
        return scores.softmax(-1) @ memory


class LocalAttention(nn.Module):
    """Attends near the diagonal; the bias is built once for the longest input."""

    def __init__(self, longest=32, width=2.0):
        super().__init__()
        distance = torch.arange(longest)[None] - torch.arange(longest)[:, None]
        self.bias = -(distance.float() / width) ** 2

    def forward(self, query, memory, padding):
        scores = query @ memory.transpose(1, 2)
        scores = scores + self.bias[: query.size(1), : memory.size(1)]  # raises
        return scores.masked_fill(padding.unsqueeze(1), -1e9).softmax(-1) @ memory


class Decoder(nn.Module):
    def __init__(self, vocab, dim, attention="dot"):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.attention = DotAttention() if attention == "dot" else LocalAttention()
        self.mix = nn.Linear(2 * dim, dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, tokens, state, memory, padding):
        hidden, state = self.rnn(self.embed(tokens), state)
        context = self.attention(hidden, memory, padding)
        return self.out(torch.tanh(self.mix(torch.cat([hidden, context], dim=-1)))), state
