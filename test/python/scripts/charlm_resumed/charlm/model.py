import torch
import torch.nn as nn


class CharRNN(nn.Module):
    def __init__(self, vocab, embed=16, hidden=32, layers=1, cell="lstm", dropout=0.0, tie=False):
        super().__init__()
        self.hidden, self.layers, self.cell = hidden, layers, cell
        self.embed = nn.Embedding(vocab, embed)
        rnn = {"lstm": nn.LSTM, "gru": nn.GRU}[cell]
        self.rnn = rnn(embed, hidden, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0)
        self.drop = nn.Dropout(dropout)
        self.project = nn.Linear(hidden, embed) if tie else nn.Identity()
        self.out = nn.Linear(embed if tie else hidden, vocab)
        if tie:
            self.out.weight = self.embed.weight

    def initial(self, batch_size, device=None):
        shape = (self.layers, batch_size, self.hidden)
        h = torch.zeros(shape, device=device)
        return (h, torch.zeros_like(h)) if self.cell == "lstm" else h

    def forward(self, tokens, state):
        embedded = self.drop(self.embed(tokens))
        output, state = self.rnn(embedded, state)  # raises
        return self.out(self.project(self.drop(output))), state


def detached(state):
    if isinstance(state, tuple):
        return tuple(detached(s) for s in state)
    return state.detach()
