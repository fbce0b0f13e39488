import math
from typing import Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.0, max_len: int = 64):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.pe = pe

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.pe[: x.size(0)]  # raises
        return self.dropout(x)


class BufferedEncoding(PositionalEncoding):
    def __init__(self, d_model, **kwargs):
        super().__init__(d_model, **kwargs)
        table = self.pe
        del self.pe
        self.register_buffer("pe", table, persistent=False)


class TransformerLM(nn.Module):
    def __init__(self, ntoken, d_model, nhead, encoding=PositionalEncoding):
        super().__init__()
        self.embedding = nn.Embedding(ntoken, d_model)
        self.pos = encoding(d_model)
        layer = nn.TransformerEncoderLayer(d_model, nhead, 2 * d_model, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.d_model = d_model
        self.decoder = nn.Linear(d_model, ntoken)
        self.src_mask = None

    def _generate_square_subsequent_mask(self, sz):
        return torch.log(torch.tril(torch.ones(sz, sz)))

    def forward(self, src, has_mask=True):
        if has_mask:
            if self.src_mask is None or self.src_mask.size(0) != len(src):
                self.src_mask = self._generate_square_subsequent_mask(len(src)).to(src.device)
        else:
            self.src_mask = None
        src = self.pos(self.embedding(src) * math.sqrt(self.d_model))
        return F.log_softmax(self.decoder(self.encoder(src, self.src_mask)), dim=-1)


def case_lm_plain_table():
    model = TransformerLM(11, 8, 2).to("cuda")
    tokens = torch.randint(11, (5, 2), device="cuda")
    model(tokens)


def case_lm_buffered_table():
    model = TransformerLM(11, 8, 2, encoding=BufferedEncoding).to("cuda")
    tokens = torch.randint(11, (5, 2), device="cuda")
    out = model(tokens)
    assert out.shape == (5, 2, 11)
    model(tokens[:3], has_mask=False)


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.register_buffer("bias", torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size))
        self.n_head, self.n_embd = n_head, n_embd

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        return self.c_proj((F.softmax(att, dim=-1) @ v).transpose(1, 2).contiguous().view(B, T, C))


class GPT(nn.Module):
    def __init__(self, vocab, n_embd=8, n_head=2, block=16, layers=2):
        super().__init__()
        self.transformer = nn.ModuleDict(dict(
            wte=nn.Embedding(vocab, n_embd),
            wpe=nn.Embedding(block, n_embd),
            h=nn.ModuleList([CausalSelfAttention(n_embd, n_head, block) for _ in range(layers)]),
            ln_f=nn.LayerNorm(n_embd),
        ))
        self.lm_head = nn.Linear(n_embd, vocab, bias=False)
        self.transformer.wte.weight = self.lm_head.weight

    def forward(self, idx, targets=None):
        b, t = idx.shape
        pos = torch.arange(0, t, dtype=torch.long, device=idx.device).unsqueeze(0)
        x = self.transformer.wte(idx) + self.transformer.wpe(pos)
        for block in self.transformer.h:
            x = x + block(x)
        logits = self.lm_head(self.transformer.ln_f(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1), ignore_index=-1)  # raises
        return logits, loss


def get_batch(data, block_size, batch_size, device):
    ix = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([data[i:i + block_size] for i in ix])
    y = torch.stack([data[i + 1:i + 1 + block_size] for i in ix])
    if "cuda" in device:
        x, y = x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device, non_blocking=True)
    else:
        x, y = x.to(device), y.to(device)
    return x, y


def case_gpt_batches():
    device = "cuda:0"
    data = torch.randint(20, (200,))
    model = GPT(20)
    model.to(device)
    X, Y = get_batch(data, 8, 4, device)
    logits, loss = model(X, Y)
    loss.backward()


def case_gpt_estimate_loss():
    device = "cuda:0"
    data = torch.randint(20, (200,))
    model = GPT(20).to(device)
    out = {}
    for split in ["train", "val"]:
        losses = torch.zeros(2)
        for k in range(2):
            x, y = get_batch(data, 8, 4, device)
            _, loss = model(x, y)
            losses[k] = loss.item()
        out[split] = losses.mean()
    assert out["train"] > 0


def case_gpt_shifted_targets():
    model = GPT(20).cuda()
    tokens = torch.randint(20, (2, 9))
    logits, loss = model(tokens[:, :-1].cuda(), tokens[:, 1:])
    loss.backward()


# --- rotary ---------------------------------------------------------------------------------------
class RotaryEmbedding:
    def __init__(self, dim, base=10000, max_seq=32):
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
        t = torch.arange(max_seq, dtype=torch.float)
        freqs = torch.outer(t, inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        self.cos_cached, self.sin_cached = emb.cos()[None, None], emb.sin()[None, None]

    def __call__(self, x, seq_len):
        return self.cos_cached[:, :, :seq_len].to(x.dtype), self.sin_cached[:, :, :seq_len].to(x.dtype)


class RotaryModule(nn.Module):
    def __init__(self, dim, base=10000, max_seq=32):
        super().__init__()
        self.dim, self.base, self.max_seq_len_cached = dim, base, 0
        self.register_buffer("inv_freq", 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim)))

    def _extend(self, seq_len, device):
        self.max_seq_len_cached = seq_len
        t = torch.arange(seq_len, device=device, dtype=self.inv_freq.dtype)
        freqs = torch.einsum("i,j->ij", t, self.inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        self.register_buffer("cos_cached", emb.cos()[None, None], persistent=False)
        self.register_buffer("sin_cached", emb.sin()[None, None], persistent=False)

    def forward(self, x, seq_len):
        if seq_len > self.max_seq_len_cached:
            self._extend(seq_len, x.device)
        return self.cos_cached[:, :, :seq_len], self.sin_cached[:, :, :seq_len]


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary_pos_emb(q, k, cos, sin) -> Tuple[Tensor, Tensor]:
    return (q * cos) + (rotate_half(q) * sin), (k * cos) + (rotate_half(k) * sin)  # raises


class LlamaAttention(nn.Module):
    def __init__(self, hidden, heads, rotary):
        super().__init__()
        self.heads, self.hd = heads, hidden // heads
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=False)
        self.rotary_emb = rotary

    def forward(self, x, mask: Optional[Tensor] = None):
        b, t, _ = x.shape
        q, k, v = (p.view(b, t, self.heads, self.hd).transpose(1, 2) for p in self.qkv(x).chunk(3, -1))
        cos, sin = self.rotary_emb(v, seq_len=t)
        q, k = apply_rotary_pos_emb(q, k, cos, sin)
        w = q @ k.transpose(2, 3) / math.sqrt(self.hd)
        if mask is not None:
            w = w + mask
        return torch.softmax(w, -1, dtype=torch.float32).to(q.dtype) @ v


def case_rotary_helper_object():
    attn = LlamaAttention(8, 2, RotaryEmbedding(4)).to("cuda")
    attn(torch.randn(1, 5, 8, device="cuda"))


def case_rotary_module_growing():
    attn = LlamaAttention(8, 2, RotaryModule(4)).to("cuda")
    for n in (3, 6, 2):
        attn(torch.randn(1, n, 8, device="cuda"))


def make_causal_mask(shape, dtype, past=0):
    b, t = shape
    mask = torch.full((t, t), torch.finfo(dtype).min)
    cond = torch.arange(mask.size(-1))
    mask.masked_fill_(cond < (cond + 1).view(t, 1), 0)
    return mask.to(dtype)[None, None].expand(b, 1, t, t + past)


def expand_padding(mask, dtype, tgt_len=None):
    b, s = mask.size()
    inverted = 1.0 - mask[:, None, None, :].expand(b, 1, tgt_len or s, s).to(dtype)
    return inverted.masked_fill(inverted.to(torch.bool), torch.finfo(dtype).min)


def case_decoder_mask_combined():
    x = torch.randn(2, 4, 8).cuda()
    padding = torch.ones(2, 4).cuda()
    causal = make_causal_mask((2, 4), x.dtype)
    combined = expand_padding(padding, x.dtype, tgt_len=4) + causal  # raises
    LlamaAttention(8, 2, RotaryModule(4)).cuda()(x, combined)


def case_decoder_mask_by_caller():
    x = torch.randn(2, 4, 8).cuda()
    padding = torch.ones(2, 4).cuda()
    combined = None
    if x.shape[1] > 1:
        combined = make_causal_mask((2, 4), x.dtype).to(x.device)
    expanded = expand_padding(padding, x.dtype, tgt_len=4).to(x.device)
    combined = expanded if combined is None else expanded + combined
    LlamaAttention(8, 2, RotaryModule(4)).cuda()(x, combined)


class RelPosBias(nn.Module):
    """T5 style relative buckets"""
    def __init__(self, buckets=8, heads=2):
        super().__init__()
        self.buckets = buckets
        self.relative_attention_bias = nn.Embedding(buckets, heads)

    def forward(self, q_len, k_len):
        ctx = torch.arange(q_len)[:, None]
        mem = torch.arange(k_len)[None, :]
        bucket = (mem - ctx).clamp(-self.buckets // 2, self.buckets // 2 - 1) + self.buckets // 2
        return self.relative_attention_bias(bucket).permute(2, 0, 1).unsqueeze(0)  # raises


def case_t5_bias():
    scores = torch.zeros(1, 2, 3, 3, device="cuda")
    bias = RelPosBias().to(scores.device)
    return scores + bias(3, 3)


def case_mha_key_padding():
    mha = nn.MultiheadAttention(8, 2, batch_first=True).to("cuda:1")
    x = torch.randn(2, 3, 8, device="cuda:1")
    lengths = torch.tensor([3, 2])
    pad = torch.arange(3)[None, :] >= lengths[:, None]
    out, _ = mha(x, x, x, key_padding_mask=pad.to(x.device), need_weights=False)
    out[pad] = 0.0
    return out
