import math

import torch
import torch.nn as nn


class TriangularCausalMask:
    def __init__(self, B, L, S, device='cpu'):
        with torch.no_grad():
            self._mask = torch.triu(torch.ones([B, 1, L, S], dtype=torch.bool), diagonal=1 + S - L).to(device)

    @property
    def mask(self):
        return self._mask


class FullAttention(nn.Module):
    def __init__(self, mask_flag=True):
        super().__init__()
        self.mask_flag = mask_flag

    def forward(self, queries, keys, values):
        B, L, _, E = queries.shape
        S = keys.shape[1]
        scores = torch.einsum('blhe,bshe->bhls', queries, keys) / math.sqrt(E)
        if self.mask_flag:
            attn_mask = TriangularCausalMask(B, L, S, device=queries.device)
            scores.masked_fill_(attn_mask.mask, -float('inf'))
        return torch.einsum('bhls,bshd->blhd', torch.softmax(scores, dim=-1), values)


class ProbAttention(nn.Module):
    """Only the most active queries attend; others take the mean of the values."""

    def __init__(self, mask_flag=True, factor=2):
        super().__init__()
        self.mask_flag = mask_flag
        self.factor = factor

    def forward(self, queries, keys, values):
        q, k, v = (z.transpose(1, 2) for z in (queries, keys, values))
        B, H, L, E = q.shape
        S = k.shape[2]
        u = min(self.factor * int(math.ceil(math.log(L + 1))), L)
        index_sample = torch.randint(S, (min(S, 2 * u),))
        sampled = torch.matmul(q, k[:, :, index_sample].transpose(-2, -1))
        sparsity = sampled.max(-1)[0] - sampled.mean(-1)
        top = sparsity.topk(u, sorted=False)[1]
        rows = torch.arange(B)[:, None, None], torch.arange(H)[None, :, None]
        scores = torch.matmul(q[rows[0], rows[1], top], k.transpose(-2, -1)) / math.sqrt(E)
        if self.mask_flag:
            full = TriangularCausalMask(1, L, S).mask[0, 0]
            scores = scores.masked_fill(full[top], -float('inf'))  # raises
        context = v.mean(dim=2, keepdim=True).expand(B, H, L, v.shape[-1]).clone()
        context[rows[0], rows[1], top] = torch.softmax(scores, dim=-1) @ v
        return context.transpose(1, 2).contiguous()


class AttentionLayer(nn.Module):
    def __init__(self, attention, d_model, n_heads):
        super().__init__()
        self.inner_attention = attention
        self.n_heads = n_heads
        self.projections = nn.ModuleDict({name: nn.Linear(d_model, d_model) for name in 'qkvo'})

    def forward(self, queries, keys, values):
        B = queries.shape[0]
        q, k, v = (self.projections[n](z).view(B, z.shape[1], self.n_heads, -1)
                   for n, z in zip('qkv', (queries, keys, values)))
        return self.projections['o'](self.inner_attention(q, k, v).reshape(B, queries.shape[1], -1))
