import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.proj = nn.Linear(dim, dim, bias=False)

    def forward(self, query, memory, mask):
        score = torch.bmm(memory, self.proj(query).unsqueeze(2)).squeeze(2)
        score = score.masked_fill(mask, -1e9)
        return torch.bmm(score.softmax(1).unsqueeze(1), memory).squeeze(1)


class Seq2Seq(nn.Module):
    def __init__(self, n_src, n_tgt, dim=8, pad=0):
        super().__init__()
        self.pad = pad
        self.src_emb, self.tgt_emb = nn.Embedding(n_src, dim, padding_idx=pad), nn.Embedding(n_tgt, dim, padding_idx=pad)
        self.encoder = nn.LSTM(dim, dim // 2, batch_first=True, bidirectional=True)
        self.cell = nn.LSTMCell(2 * dim, dim)
        self.attn = Attention(dim)
        self.out = nn.Linear(dim, n_tgt)

    def encode(self, src, lens):
        packed = pack_padded_sequence(self.src_emb(src), lens, batch_first=True, enforce_sorted=False)
        memory, (h, c) = self.encoder(packed)
        memory, _ = pad_packed_sequence(memory, batch_first=True)
        join = lambda s: torch.cat([s[0], s[1]], -1)
        return memory, src.eq(self.pad), (join(h), join(c))

    def step(self, token, memory, mask, state):
        context = self.attn(state[0], memory, mask)
        state = self.cell(torch.cat([self.tgt_emb(token), context], -1), state)  # raises
        return self.out(state[0]), state

    def forward(self, src, lens, tgt, bos):
        memory, mask, state = self.encode(src, lens)
        token = tgt.new_full((tgt.size(0),), bos)
        logits = []
        for t in range(tgt.size(1)):
            out, state = self.step(token, memory, mask, state)
            logits.append(out)
            token = tgt[:, t]
        return torch.stack(logits, 1)
