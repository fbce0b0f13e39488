import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.ff = nn.LayerNorm(dim), nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.mix = nn.GRU(dim, dim, batch_first=True)

    def forward(self, x, mask):
        h, _ = self.mix(self.norm(x))
        return x + self.ff(h * mask.unsqueeze(-1))


class StageLM(nn.Module):
    def __init__(self, vocab=20, dim=8, depth=4):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab)

    def forward(self, input_ids, attention_mask=None, labels=None):
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        x = self.embed(input_ids)
        for block in self.blocks:
            x = block(x, attention_mask)
        logits = self.head(self.norm(x))
        out = {"logits": logits}
        if labels is not None:
            labels = labels.to(logits.device)
            shift = logits[..., :-1, :].reshape(-1, logits.size(-1))
            out["loss"] = F.cross_entropy(shift, labels[..., 1:].reshape(-1), ignore_index=-100)
        return out
