import math
from dataclasses import dataclass
from typing import Optional

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class GPTConfig:
    block_size: int = 16
    vocab_size: int = 50
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 16
    dropout: float = 0.0
    bias: bool = True


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        assert config.n_embd % config.n_head == 0
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.n_head = config.n_head
        self.n_embd = config.n_embd
        self.register_buffer(
            "bias",
            torch.tril(torch.ones(config.block_size, config.block_size)).view(
                1, 1, config.block_size, config.block_size
            ),
        )

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.c_proj(y)


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd)
        self.mlp = nn.ModuleDict(
            dict(
                c_fc=nn.Linear(config.n_embd, 4 * config.n_embd),
                act=nn.GELU(),
                c_proj=nn.Linear(4 * config.n_embd, config.n_embd),
            )
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        m = self.mlp
        return x + m.c_proj(m.act(m.c_fc(self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(config.vocab_size, config.n_embd),
                wpe=nn.Embedding(config.block_size, config.n_embd),
                h=nn.ModuleList([Block(config) for _ in range(config.n_layer)]),
                ln_f=nn.LayerNorm(config.n_embd),
            )
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight

    def forward(self, idx, targets=None):
        device = idx.device
        b, t = idx.size()
        pos = torch.arange(0, t, dtype=torch.long, device=device).unsqueeze(0)
        x = self.transformer.wte(idx) + self.transformer.wpe(pos)
        for block in self.transformer.h:
            x = block(x)
        x = self.transformer.ln_f(x)
        if targets is not None:
            logits = self.lm_head(x)
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        else:
            logits = self.lm_head(x[:, [-1], :])
            loss = None
        return logits, loss

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None):
        for _ in range(max_new_tokens):
            idx_cond = idx if idx.size(1) <= self.config.block_size else idx[:, -self.config.block_size :]
            logits, _ = self(idx_cond)
            logits = logits[:, -1, :] / temperature
            if top_k is not None:
                v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
                logits[logits < v[:, [-1]]] = -float("Inf")
            probs = F.softmax(logits, dim=-1)
            idx_next = torch.multinomial(probs, num_samples=1)
            idx = torch.cat((idx, idx_next), dim=1)
        return idx


def _get_batch(data, block_size, batch_size, device):
    ix = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([data[i : i + block_size] for i in ix])
    y = torch.stack([data[i + 1 : i + 1 + block_size] for i in ix])
    if "cuda" in device:
        x, y = x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device, non_blocking=True)
    else:
        x, y = x.to(device), y.to(device)
    return x, y


def gpt_training_step():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    config = GPTConfig()
    model = GPT(config).to(device)
    data = torch.randint(0, config.vocab_size, (200,))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))
    x, y = _get_batch(data, config.block_size, 4, device)
    _, loss = model(x, y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def gpt_generate():
    device = "cuda"
    model = GPT(GPTConfig())
    model.eval()
    model.to(device)
    start_ids = [1, 2, 3]
    x = torch.tensor(start_ids, dtype=torch.long, device=device)[None, ...]
    y = model.generate(x, 4, temperature=0.8, top_k=5)
    return y[0].tolist()


def gpt_generate_from_prompt():
    device = "cuda"
    model = GPT(GPTConfig())
    model.eval()
    model.to(device)
    ids = torch.tensor([[1, 2, 3]])
    for _ in range(2):
        emb = model.transformer.wte(ids)  # raises
        logits, _ = model(ids)
        ids = torch.cat([ids, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    return emb.shape, ids


def _generate_square_subsequent_mask(sz):
    mask = (torch.triu(torch.ones(sz, sz)) == 1).transpose(0, 1)
    mask = mask.float().masked_fill(mask == 0, float("-inf")).masked_fill(mask == 1, float(0.0))
    return mask


def encoder_with_square_mask():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    layer = nn.TransformerEncoderLayer(d_model=16, nhead=2, dim_feedforward=32)
    encoder = nn.TransformerEncoder(layer, num_layers=1).to(device)
    src = torch.randn(5, 2, 16, device=device)
    src_mask = _generate_square_subsequent_mask(src.size(0)).to(device)
    return encoder(src, src_mask)


def attention_with_square_mask():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    q = torch.randn(2, 5, 16, device=device)
    k, v = torch.randn_like(q), torch.randn_like(q)
    scores = torch.bmm(q, k.transpose(1, 2)) / 4.0
    scores = scores + _generate_square_subsequent_mask(q.size(1))  # raises
    return scores.softmax(-1) @ v


def _lengths_to_mask(lengths, max_len: Optional[int] = None):
    max_len = max_len or int(lengths.max())
    return torch.arange(max_len)[None, :] < lengths[:, None]  # raises


def pooled_with_length_mask():
    hidden = torch.randn(3, 7, 8, device="cuda")
    lengths = torch.tensor([7, 4, 2], device="cuda")
    mask = _lengths_to_mask(lengths, hidden.size(1)).unsqueeze(-1)
    return (hidden * mask).sum(1) / lengths[:, None]


def _sequence_mask(lengths, max_len=None):
    if max_len is None:
        max_len = lengths.max().item()
    ids = torch.arange(0, max_len, out=torch.empty(max_len, dtype=torch.long, device=lengths.device))
    return ids < lengths.unsqueeze(1)


def pooled_with_sequence_mask():
    hidden = torch.randn(3, 7, 8, device="cuda")
    lengths = torch.LongTensor([7, 4, 2]).to(hidden.device)
    mask = _sequence_mask(lengths)
    hidden = hidden.masked_fill(~mask.unsqueeze(-1), 0.0)
    return hidden.sum(1) / lengths.unsqueeze(1)


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, base=10000, max_position=32):
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
        self.register_buffer("inv_freq", inv_freq)
        self.max_seq_len_cached = max_position
        t = torch.arange(max_position, device=self.inv_freq.device, dtype=self.inv_freq.dtype)
        freqs = torch.einsum("i,j->ij", t, self.inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        self.cos_cached = emb.cos()[None, None]
        self.sin_cached = emb.sin()[None, None]

    def forward(self, x, seq_len):
        if seq_len > self.max_seq_len_cached:
            t = torch.arange(seq_len, device=x.device, dtype=self.inv_freq.dtype)
            freqs = torch.einsum("i,j->ij", t, self.inv_freq)
            emb = torch.cat((freqs, freqs), dim=-1).to(x.device)
            self.cos_cached = emb.cos()[None, None]
            self.sin_cached = emb.sin()[None, None]
        return self.cos_cached[:, :, :seq_len].to(x.dtype), self.sin_cached[:, :, :seq_len].to(x.dtype)


def _rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def _apply_rotary(q, k, cos, sin):
    q = (q * cos) + (_rotate_half(q) * sin)
    k = (k * cos) + (_rotate_half(k) * sin)
    return q, k


def _apply_rotary_pos_emb(q, k, cos, sin):
    q_embed = (q * cos) + (_rotate_half(q) * sin)  # raises
    k_embed = (k * cos) + (_rotate_half(k) * sin)
    return q_embed, k_embed


def rotary_within_the_cache():
    rope = RotaryEmbedding(8).cuda()
    q = torch.randn(1, 2, 10, 8, device="cuda")
    k = torch.randn(1, 2, 10, 8, device="cuda")
    cos, sin = rope(q, seq_len=10)
    return _apply_rotary_pos_emb(q, k, cos, sin)


def rotary_beyond_the_cache():
    rope = RotaryEmbedding(8).cuda()
    q = torch.randn(1, 2, 40, 8, device="cuda")
    k = torch.randn(1, 2, 40, 8, device="cuda")
    cos, sin = rope(q, seq_len=40)
    return _apply_rotary(q, k, cos, sin)


class RelativeBias(nn.Module):
    def __init__(self, num_buckets=8, heads=2):
        super().__init__()
        self.num_buckets = num_buckets
        self.table = nn.Embedding(num_buckets, heads)

    def bucket(self, rel):
        return rel.clamp(-(self.num_buckets // 2), self.num_buckets // 2 - 1) + self.num_buckets // 2

    def forward(self, q_len, k_len, device=None):
        q_pos = torch.arange(q_len, device=device)[:, None]
        k_pos = torch.arange(k_len, device=device)[None, :]
        return self.table(self.bucket(k_pos - q_pos)).permute(2, 0, 1).unsqueeze(0)  # raises


class RelativeBiasOnWeight(RelativeBias):
    def forward(self, q_len, k_len, device=None):
        device = self.table.weight.device if device is None else device
        q_pos = torch.arange(q_len, device=device)[:, None]
        k_pos = torch.arange(k_len, device=device)[None, :]
        return self.table(self.bucket(k_pos - q_pos)).permute(2, 0, 1).unsqueeze(0)


def relative_bias_default_device():
    bias = RelativeBias().to("cuda:0")
    scores = torch.randn(1, 2, 6, 6, device="cuda:0")
    return (scores + bias(6, 6)).softmax(-1)


def relative_bias_on_weight_device():
    bias = RelativeBiasOnWeight().to("cuda:0")
    scores = torch.randn(1, 2, 6, 6, device="cuda:0")
    return (scores + bias(6, 6)).softmax(-1)


class KVCache:
    def __init__(self, layers, batch, heads, length, dim, dtype=torch.float32):
        self.k = [torch.zeros(batch, heads, length, dim, dtype=dtype) for _ in range(layers)]
        self.v = [torch.zeros(batch, heads, length, dim, dtype=dtype) for _ in range(layers)]
        self.pos = 0

    def update(self, i, k, v):
        t = k.size(2)
        self.k[i][:, :, self.pos : self.pos + t] = k
        self.v[i][:, :, self.pos : self.pos + t] = v
        return self.k[i][:, :, : self.pos + t], self.v[i][:, :, : self.pos + t]


def decode_with_a_preallocated_cache():
    device = "cuda"
    cache = KVCache(layers=1, batch=1, heads=2, length=16, dim=4)
    q = torch.randn(1, 2, 3, 4, device=device)
    k, v = cache.update(0, torch.randn(1, 2, 3, 4, device=device), torch.randn(1, 2, 3, 4, device=device))
    att = q @ k.transpose(-1, -2)  # raises
    return att.softmax(-1) @ v
