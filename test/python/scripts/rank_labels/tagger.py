import torch
import torch.nn as nn


class Tagger(nn.Module):
    def __init__(self, vocab, tags, dim=8):
        super().__init__()
        self.hidden = dim
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, tags)

    def init_hidden(self, n):
        return (torch.zeros(1, n, self.hidden).cuda(), torch.zeros(1, n, self.hidden).cuda())

    def forward(self, words):
        x = self.emb(words)
        h, _ = self.lstm(x, self.init_hidden(words.size(0)))  # raises
        return self.out(h)


def token_accuracy(logits, tags, mask):
    hit = (logits.argmax(-1) == tags) & mask.bool()
    return hit.sum().item(), int(mask.sum())
