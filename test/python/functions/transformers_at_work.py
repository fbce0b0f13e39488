import math
from dataclasses import dataclass, field
from typing import List, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

dev = "cuda:0"


def _causal(n: int, device=None) -> Tensor:
    return torch.full((n, n), float("-inf"), device=device).triu(1)


def _heads(x: Tensor, h: int) -> Tensor:
    b, t, d = x.shape
    return x.view(b, t, h, d // h).transpose(1, 2)


class SelfAttention(nn.Module):
    def __init__(self, dim=8, heads=2, max_len=16, mask_kind="buffer"):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.mask_kind = mask_kind
        if mask_kind == "buffer":
            self.register_buffer("bias", torch.tril(torch.ones(max_len, max_len)).bool(), persistent=False)
        elif mask_kind == "attribute":
            self.bias = torch.tril(torch.ones(max_len, max_len)).bool()
        else:
            self.bias = None

    def forward(self, x):
        t = x.size(1)
        q, k, v = (_heads(e, self.heads) for e in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        if self.bias is None:
            scores = scores + _causal(t, x.device)
        else:
            scores = scores.masked_fill(~self.bias[:t, :t], float("-inf"))  # raises
        y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).flatten(2))


def case_attention_with_buffer_mask():
    return SelfAttention().to(dev)(torch.randn(2, 5, 8, device=dev)).shape


def case_attention_with_attribute_mask():
    return SelfAttention(mask_kind="attribute").to(dev)(torch.randn(2, 5, 8, device=dev)).shape


def case_attention_with_computed_mask():
    return SelfAttention(mask_kind="none").to(dev)(torch.randn(2, 5, 8, device=dev)).shape


# --- padding ---------------------------------------------------------------


def _length_mask(lengths: List[int], longest: Optional[int] = None) -> Tensor:
    longest = longest or max(lengths)
    return torch.arange(longest)[None, :] < torch.tensor(lengths)[:, None]


def case_padding_mask_into_encoder_layer():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).to(dev)
    x = torch.randn(3, 6, 8).to(dev)
    keep = _length_mask([6, 4, 2]).to(x.device)
    return layer(x, src_key_padding_mask=~keep).sum().item()


def case_mean_pool_with_padding_mask():
    x = torch.randn(3, 6, 8).to(dev)
    keep = _length_mask([6, 4, 2])
    summed = (x * keep.unsqueeze(-1)).sum(1)  # raises
    return summed / keep.sum(1, keepdim=True)


def case_select_by_padding_mask():
    x = torch.randn(3, 6, 8).to(dev)
    keep = _length_mask([6, 4, 2])
    flat = x[keep]
    return flat.mean(0).tolist()


def case_multihead_with_float_mask():
    mha = nn.MultiheadAttention(8, 2, batch_first=True).to(dev)
    x = torch.randn(2, 5, 8, device=dev)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    y, _ = mha(x, x, x, attn_mask=mask)  # raises
    return y.shape


def case_multihead_with_float_mask_like_input():
    mha = nn.MultiheadAttention(8, 2, batch_first=True).to(dev)
    x = torch.randn(2, 5, 8, device=dev)
    mask = nn.Transformer.generate_square_subsequent_mask(5).type_as(x)
    y, w = mha(x, x, x, attn_mask=mask, need_weights=True)
    return y.shape, w.shape


# --- positions --------------------------------------------------------------


class Rotary(nn.Module):
    """Rotary embedding whose tables are recomputed when a longer sequence or another device comes."""

    def __init__(self, dim, base=10000.0, check_device=True):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / base ** (torch.arange(0, dim, 2).float() / dim))
        self.check_device = check_device
        self._seen = 0
        self._cos: Optional[Tensor] = None
        self._sin: Optional[Tensor] = None

    def tables(self, n):
        stale = self._cos is None or n > self._seen
        if self.check_device and not stale:
            stale = self._cos.device != self.inv_freq.device
        if stale:
            self._seen = n
            t = torch.arange(n, device=self.inv_freq.device).type_as(self.inv_freq)
            angles = torch.outer(t, self.inv_freq)
            emb = torch.cat([angles, angles], -1)
            self._cos, self._sin = emb.cos(), emb.sin()
        return self._cos[:n], self._sin[:n]

    def forward(self, x):
        cos, sin = self.tables(x.size(-2))
        a, b = x.chunk(2, -1)
        turned = torch.cat([-b, a], -1)
        return x * cos + turned * sin  # raises


def case_rotary_follows_its_module():
    rope = Rotary(4)
    rope(torch.randn(1, 6, 4))
    rope.cuda()
    return rope(torch.randn(1, 6, 4, device="cuda")).norm()


def case_rotary_kept_from_warmup():
    rope = Rotary(4, check_device=False)
    rope(torch.randn(1, 6, 4))
    rope.cuda()
    return rope(torch.randn(1, 6, 4, device="cuda")).norm()


def case_rotary_longer_than_warmup():
    rope = Rotary(4, check_device=False)
    rope(torch.randn(1, 2, 4))
    rope.cuda()
    return rope(torch.randn(1, 6, 4, device="cuda")).norm()


class RelativeBias(nn.Module):
    def __init__(self, heads=2, buckets=8, reach=16):
        super().__init__()
        self.buckets, self.reach = buckets, reach
        self.table = nn.Embedding(buckets, heads)

    def bucket(self, rel):
        n = (-rel).clamp(min=0)
        exact = self.buckets // 2
        far = exact + (torch.log(n.float().clamp(min=1) / exact) / math.log(self.reach / exact) * (self.buckets - exact)).long()
        return torch.where(n < exact, n, far.clamp(max=self.buckets - 1))

    def forward(self, q, k, device=None):
        at_q = torch.arange(q, dtype=torch.long, device=device)
        at_k = torch.arange(k, dtype=torch.long, device=device)
        return self.table(self.bucket(at_k[None] - at_q[:, None])).permute(2, 0, 1)[None]  # raises


def case_relative_bias_given_device():
    bias = RelativeBias().to(dev)
    scores = torch.randn(1, 2, 4, 4, device=dev)
    return (scores + bias(4, 4, device=bias.table.weight.device)).softmax(-1).sum()


def case_relative_bias_default():
    bias = RelativeBias().to(dev)
    scores = torch.randn(1, 2, 4, 4, device=dev)
    return (scores + bias(*scores.shape[-2:])).softmax(-1).sum()


def _alibi_slopes(heads):
    start = 2 ** (-8 / heads)
    return torch.tensor([start ** (i + 1) for i in range(heads)])


def case_alibi_added_to_scores():
    scores = torch.randn(1, 4, 5, 5).cuda()
    distance = torch.arange(5, device=scores.device)[None, :] - torch.arange(5, device=scores.device)[:, None]
    bias = _alibi_slopes(4).view(-1, 1, 1) * distance.float()  # raises
    return (scores + bias).softmax(-1)


def case_alibi_slopes_taken_one_by_one():
    scores = torch.randn(1, 4, 5, 5).cuda()
    distance = torch.arange(5, device=scores.device)[None, :] - torch.arange(5, device=scores.device)[:, None]
    per_head = [slope * distance for slope in _alibi_slopes(4)]
    return (scores + torch.stack(per_head)).softmax(-1).sum()


# --- decoding ---------------------------------------------------------------


@dataclass
class Cache:
    k: List[Optional[Tensor]] = field(default_factory=list)
    v: List[Optional[Tensor]] = field(default_factory=list)

    @classmethod
    def empty(cls, layers, batch, heads, dim, **kw):
        return cls([torch.empty(batch, heads, 0, dim, **kw) for _ in range(layers)],
                   [torch.empty(batch, heads, 0, dim, **kw) for _ in range(layers)])

    def push(self, layer, k, v) -> Tuple[Tensor, Tensor]:
        self.k[layer] = torch.cat([self.k[layer], k], dim=2)  # raises
        self.v[layer] = torch.cat([self.v[layer], v], dim=2)
        return self.k[layer], self.v[layer]

    def reorder(self, beams):
        self.k = [k.index_select(0, beams) for k in self.k]
        self.v = [v.index_select(0, beams) for v in self.v]


def case_cache_allocated_with_options():
    cache = Cache.empty(1, 2, 2, 4, device=dev)
    for _ in range(3):
        k, v = cache.push(0, torch.randn(2, 2, 1, 4, device=dev), torch.randn(2, 2, 1, 4, device=dev))
    cache.reorder(torch.tensor([1, 0], device=dev))
    return k.shape, cache.v[0].shape


def case_cache_allocated_plainly():
    cache = Cache.empty(1, 2, 2, 4, dtype=torch.float32)
    for _ in range(3):
        k, v = cache.push(0, torch.randn(2, 2, 1, 4, device=dev) + 1, torch.randn(2, 2, 1, 4, device=dev))
    return k.shape


def case_static_cache_written_by_slice():
    store = torch.zeros(2, 2, 8, 4)
    for step in range(3):
        store[:, :, step] = torch.randn(2, 2, 4, device=dev)
    q = torch.randn(2, 2, 1, 4)
    return (q @ store[:, :, :3].transpose(-1, -2)).shape


def case_static_cache_queried():
    store = torch.zeros(2, 2, 8, 4)
    q = torch.randn(2, 2, 1, 4, device=dev)
    for step in range(3):
        store[:, :, step] = q[:, :, 0]
    return torch.matmul(q, store[:, :, :3].transpose(-1, -2)).shape  # raises


class TinyLM(nn.Module):
    def __init__(self, vocab=11, dim=8):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.mix = SelfAttention(dim)
        self.head = nn.Linear(dim, vocab, bias=False)
        self.head.weight = self.emb.weight

    def forward(self, ids):
        return self.head(self.mix(self.emb(ids)))

    @property
    def device(self):
        return next(self.parameters()).device


def _top_p(logits, p=0.9):
    ordered, order = logits.sort(-1, descending=True)
    over = ordered.softmax(-1).cumsum(-1) > p
    over[..., 1:] = over[..., :-1].clone()
    over[..., 0] = False
    return logits.masked_fill(over.scatter(-1, order, over), float("-inf"))


@torch.no_grad()
def _generate(lm, prompt, steps=3, eos=0, pad=0):
    ids = prompt
    done = torch.zeros(ids.size(0), dtype=torch.bool, device=ids.device)
    for _ in range(steps):
        probs = _top_p(lm(ids)[:, -1]).softmax(-1)
        nxt = torch.multinomial(probs, 1).squeeze(1)
        nxt = nxt.masked_fill(done, pad)
        ids = torch.cat([ids, nxt[:, None]], 1)
        done |= nxt == eos
        if done.all():
            break
    return ids


def case_generate_from_prompt_on_model_device():
    lm = TinyLM().to("cuda:2").eval()
    out = _generate(lm, torch.tensor([[1, 2, 3]], device=lm.device))
    return out[0].tolist()


def case_generate_stop_words():
    lm = TinyLM().to("cuda:2").eval()
    out = _generate(lm, torch.tensor([[1, 2, 3]], device=lm.device))
    stop = torch.tensor([4, 5])
    return torch.isin(out, stop).any()  # raises


def case_generate_repetition_penalty():
    lm = TinyLM().to("cuda:1").eval()
    ids = torch.tensor([[1, 2, 3], [4, 4, 1]])
    with torch.no_grad():
        logits = lm(ids.to(lm.device))[:, -1]
    picked = logits.gather(1, ids)  # raises
    picked = torch.where(picked < 0, picked * 1.2, picked / 1.2)
    return logits.scatter(1, ids, picked)


def case_generate_banned_tokens_by_index():
    lm = TinyLM().to("cuda:1").eval()
    banned = torch.tensor([0, 7])
    with torch.no_grad():
        logits = lm(torch.tensor([[1, 2, 3]]).to(lm.device))[:, -1]
    logits[:, banned] = -1e4
    return logits.argmax(-1).item()


def case_beam_search_two_steps():
    lm = TinyLM().to(dev).eval()
    beams, vocab = 3, 11
    ids = torch.full((beams, 1), 1, device=dev)
    score = torch.tensor([0.0, -1e9, -1e9])
    for _ in range(2):
        logp = F.log_softmax(lm(ids)[:, -1], -1).detach()
        score = score.to(logp.device)
        total = (score[:, None] + logp).view(-1)
        score, flat = total.topk(beams)
        ids = torch.cat([ids[flat // vocab], (flat % vocab)[:, None]], 1)
    return ids.tolist(), score.tolist()


def case_beam_search_length_normalised():
    lm = TinyLM().to(dev).eval()
    ids = torch.randint(1, 11, (4, 5), device=dev)
    lengths = torch.tensor([5, 3, 4, 5])
    logp = F.log_softmax(lm(ids), -1).gather(-1, ids.unsqueeze(-1)).squeeze(-1).sum(1)
    normed = logp / lengths ** 0.6  # raises
    return ids[normed.argmax()].tolist()


def case_beam_search_finished_on_host():
    lm = TinyLM().to(dev).eval()
    ids = torch.randint(1, 11, (4, 5), device=dev)
    finished = []
    with torch.no_grad():
        logp = F.log_softmax(lm(ids), -1).amax(-1).sum(1)
    for row, value in zip(ids.cpu(), logp):
        finished.append((value / len(row) ** 0.6, row))
    best = max(finished, key=lambda pair: pair[0])
    return torch.stack([row for _, row in finished]).eq(best[1]).all(1).nonzero().flatten().tolist()


# --- adapters ---------------------------------------------------------------


class LoRA(nn.Module):
    def __init__(self, base: nn.Linear, r=2, alpha=4, place=None):
        super().__init__()
        self.base = base
        for p in base.parameters():
            p.requires_grad_(False)
        place = {} if place is None else {"device": place}
        self.a = nn.Parameter(torch.randn(r, base.in_features, **place) * 0.02)
        self.b = nn.Parameter(torch.zeros(base.out_features, r, **place))
        self.scale = alpha / r

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.a), self.b) * self.scale  # raises

    @torch.no_grad()
    def merge(self):
        self.base.weight += (self.b @ self.a).to(self.base.weight.device) * self.scale
        return self.base


def case_lora_wrapped_before_move():
    block = nn.Sequential(LoRA(nn.Linear(8, 8)), nn.GELU()).to(dev)
    return block(torch.randn(2, 8, device=dev)).shape


def case_lora_wrapped_after_move():
    block = nn.Sequential(nn.Linear(8, 8), nn.GELU()).to(dev)
    block[0] = LoRA(block[0])
    return block(torch.randn(2, 8, device=dev)).shape


def case_lora_wrapped_after_move_beside_base():
    block = nn.Sequential(nn.Linear(8, 8), nn.GELU()).to(dev)
    block[0] = LoRA(block[0], place=block[0].weight.device)
    return block(torch.randn(2, 8, device=dev)).shape


def case_lora_merged_away():
    block = nn.Sequential(nn.Linear(8, 8), nn.GELU()).to(dev)
    adapter = LoRA(block[0])
    block[0] = adapter.merge()
    return block(torch.randn(2, 8, device=dev)).shape


def case_shifted_label_loss():
    lm = TinyLM().to(dev)
    ids = torch.randint(0, 11, (2, 6))
    labels = ids.clone()
    labels[:, :2] = -100
    logits = lm(ids.to(dev))
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)  # raises


def case_shifted_label_loss_of_moved_batch():
    lm = TinyLM().to(dev)
    batch = {"ids": torch.randint(0, 11, (2, 6))}
    batch["labels"] = batch["ids"].masked_fill(batch["ids"] == 0, -100)
    batch = {k: v.to(lm.device) for k, v in batch.items()}
    logits = lm(batch["ids"])
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), batch["labels"][:, 1:].flatten()).item()
