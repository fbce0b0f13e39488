"""Decoder-only LM toolbox: rotary, KV cache, sampling, LoRA, speculative decoding, pipeline split, serving loop."""
from __future__ import annotations

import math
import typing as tp
from collections import UserDict
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Config:
    vocab: int = 16
    dim: int = 8
    heads: int = 2
    layers: int = 2
    max_len: int = 12

    @property
    def head_dim(self):
        return self.dim // self.heads


class BatchEncoding(UserDict):
    def __getattr__(self, item):
        try:
            return self.data[item]
        except KeyError:
            raise AttributeError(item)

    def to(self, device):
        self.data = {k: v.to(device) for k, v in self.data.items()}
        return self


class Tokenizer:
    pad = 0

    def __init__(self, vocab=16):
        self.vocab = vocab

    def __call__(self, texts: list[str], return_lengths=False):
        ids = [[(ord(c) % (self.vocab - 1)) + 1 for c in t] for t in texts]
        n = max(map(len, ids))
        rows = torch.tensor([[self.pad] * (n - len(r)) + r for r in ids])
        enc = BatchEncoding(input_ids=rows, attention_mask=(rows != self.pad).long())
        if return_lengths:
            enc["lengths"] = enc.attention_mask.sum(1)
        return enc

    def decode(self, row):
        return "".join(chr(97 + int(i)) for i in row if i != self.pad)


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Rotary(nn.Module):
    def __init__(self, dim, base=100.0):
        super().__init__()
        inv = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
        self.register_buffer("inv", inv, persistent=False)
        self._len, self._cos, self._sin = 0, None, None

    def _build(self, n, like):
        if n > self._len or self._cos.device != like.device:
            freqs = torch.outer(torch.arange(n, device=like.device).float(), self.inv)
            emb = torch.cat([freqs, freqs], -1)
            self._len, self._cos, self._sin = n, emb.cos(), emb.sin()

    def forward(self, q, k, offset=0):
        n = offset + q.size(-2)
        self._build(n, q)
        cos, sin = self._cos[offset:n], self._sin[offset:n]
        return self.rotate(q, cos, sin), self.rotate(k, cos, sin)

    @staticmethod
    def rotate(x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin  # raises


class RotaryGrowOnly(Rotary):
    def _build(self, n, like):
        if n <= self._len:
            return
        freqs = torch.outer(torch.arange(n, device=like.device).float(), self.inv)
        emb = torch.cat([freqs, freqs], -1)
        self._len, self._cos, self._sin = n, emb.cos(), emb.sin()


class KVCache:
    def __init__(self, layers):
        self.k: list[torch.Tensor | None] = [None] * layers
        self.v: list[torch.Tensor | None] = [None] * layers

    def __len__(self):
        return self.length(0)

    def length(self, i):
        return 0 if self.k[i] is None else self.k[i].size(-2)

    def update(self, i, k, v):
        if self.k[i] is not None:
            k = torch.cat([self.k[i], k], -2)  # raises
            v = torch.cat([self.v[i], v], -2)
        self.k[i], self.v[i] = k, v
        return k, v

    def offload(self):
        self.k = [t.to("cpu") for t in self.k]
        self.v = [t.to("cpu") for t in self.v]

    def reload(self, devices):
        self.k = [t.to(d) for t, d in zip(self.k, devices)]
        self.v = [t.to(d) for t, d in zip(self.v, devices)]


class StaticCache(KVCache):
    """Preallocated; copies in place."""

    def __init__(self, cfg: Config, batch=1, device=None):
        shape = (batch, cfg.heads, cfg.max_len, cfg.head_dim)
        self.k = [torch.zeros(shape, device=device) for _ in range(cfg.layers)]
        self.v = [torch.zeros(shape, device=device) for _ in range(cfg.layers)]
        self.pos = [0] * cfg.layers

    def length(self, i):
        return self.pos[i]

    def update(self, i, k, v):
        s, e = self.pos[i], self.pos[i] + k.size(-2)
        self.k[i][:, :, s:e] = k
        self.v[i][:, :, s:e] = v
        self.pos[i] = e
        return self.k[i][:, :, :e], self.v[i][:, :, :e]


class Attention(nn.Module):
    def __init__(self, cfg, idx, rotary):
        super().__init__()
        self.cfg, self.idx = cfg, idx
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim, bias=False)
        self.o = nn.Linear(cfg.dim, cfg.dim, bias=False)
        self.rotary = rotary(cfg.head_dim)

    def split(self, t):
        b, n, _ = t.shape
        return t.view(b, n, self.cfg.heads, -1).transpose(1, 2)

    def forward(self, x, mask=None, cache=None):
        offset = 0 if cache is None else cache.length(self.idx)
        q, k, v = map(self.split, self.qkv(x).chunk(3, -1))
        q, k = self.rotary(q, k, offset)
        if cache is not None:
            k, v = cache.update(self.idx, k, v)
        att = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))  # raises
        if mask is not None:
            att = att + mask[..., -q.size(-2):, :k.size(-2)]
        y = (att.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return self.o(y)


class Block(nn.Module):
    def __init__(self, cfg, idx, rotary=Rotary):
        super().__init__()
        self.n1, self.n2 = RMSNorm(cfg.dim), RMSNorm(cfg.dim)
        self.att = Attention(cfg, idx, rotary)
        self.mlp = nn.Sequential(nn.Linear(cfg.dim, 2 * cfg.dim), nn.SiLU(), nn.Linear(2 * cfg.dim, cfg.dim))

    def forward(self, x, mask=None, cache=None):
        x = x + self.att(self.n1(x), mask, cache)
        return x + self.mlp(self.n2(x))


def causal_mask(n, dtype=torch.float, device=None):
    return torch.full((n, n), float("-inf"), dtype=dtype, device=device).triu(1)


class LM(nn.Module):
    def __init__(self, cfg=Config(), rotary=Rotary):
        super().__init__()
        self.cfg = cfg
        self.emb = nn.Embedding(cfg.vocab, cfg.dim)
        self.blocks = nn.ModuleList(Block(cfg, i, rotary) for i in range(cfg.layers))
        self.norm = RMSNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.vocab, bias=False)
        self.head.weight = self.emb.weight

    @property
    def device(self):
        return self.emb.weight.device

    def forward(self, input_ids, attention_mask=None, cache=None, labels=None, **_):
        x = self.emb(input_ids)
        mask = causal_mask(self.cfg.max_len, device=x.device)[:input_ids.size(1) + (len(cache) if cache is not None else 0)]
        for b in self.blocks:
            x = b(x, mask, cache)
        logits = self.head(self.norm(x))
        if labels is None:
            return logits
        return logits, F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())


class PipelinedLM(LM):
    """Blocks spread over cards; `hop` moves the stream."""

    def spread(self, devices):
        self.devices = devices
        self.emb.to(devices[0])
        for b, d in zip(self.blocks, devices):
            b.to(d)
        self.norm.to(devices[-1])
        return self

    def forward(self, input_ids, cache=None, **_):
        x = self.emb(input_ids)
        for b, d in zip(self.blocks, self.devices):
            x = b(x.to(d), causal_mask(input_ids.size(1), device=d), cache)
        x = self.norm(x)
        return self.project(x)

    def project(self, x):
        return self.head(x.to(self.head.weight.device))


class PipelinedNoHop(PipelinedLM):
    def project(self, x):
        return F.linear(x, self.head.weight)  # raises


class LoRA(nn.Module):
    def __init__(self, base: nn.Linear, r=2, alpha=4.0):
        super().__init__()
        self.base = base
        self.a = nn.Parameter(torch.randn(r, base.in_features) * 0.1)
        self.b = nn.Parameter(torch.zeros(base.out_features, r))
        self.s = torch.tensor(alpha / r)

    def forward(self, x):
        low = F.linear(x, self.a)  # raises
        return self.base(x) + F.linear(low, self.b) * self.s


def inject_lora(model, names=("o",), **kw):
    for mod in list(model.modules()):
        for name in names:
            child = getattr(mod, name, None)
            if isinstance(child, nn.Linear):
                setattr(mod, name, LoRA(child, **kw))
    return model


# ---- sampling -------------------------------------------------------------------------------------------------


class Warper(tp.Protocol):
    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor: ...


class TopK:
    def __init__(self, k):
        self.k = k

    def __call__(self, ids, scores):
        kth = scores.topk(self.k).values[..., -1:]
        return scores.masked_fill(scores < kth, float("-inf"))


class RepetitionPenalty:
    def __init__(self, p=1.2):
        self.p = p

    def __call__(self, ids, scores):
        seen = scores.gather(1, ids)
        seen = torch.where(seen < 0, seen * self.p, seen / self.p)
        return scores.scatter(1, ids, seen)


class BanTokens:
    def __init__(self, ids, vocab=16):
        self.bias = torch.zeros(vocab)
        self.bias[torch.tensor(ids)] = float("-inf")

    def __call__(self, ids, scores):
        return scores + self.bias  # raises


class StopOn:
    def __init__(self, *tokens):
        self.tokens = torch.tensor(tokens)

    def __call__(self, ids):
        if ids.device != self.tokens.device:
            self.tokens = self.tokens.to(ids.device)
        return torch.isin(ids[:, -1], self.tokens).all().item()


@torch.no_grad()
def generate(model, ids, max_new=3, warpers=(), stop=None, cache=None, seed=None):
    gen = torch.Generator(device=ids.device).manual_seed(seed) if seed is not None else None
    step = ids
    for _ in range(max_new):
        logits = model(step, cache=cache)[:, -1]
        for w in warpers:
            logits = w(ids, logits)
        nxt = torch.multinomial(logits.softmax(-1), 1, generator=gen)
        ids = torch.cat([ids, nxt], 1)
        step = nxt if cache is not None else ids
        if stop is not None and stop(ids):
            break
    return ids


def accept(draft_logp, target_logp, tokens):
    """How many drafted tokens the target model accepts."""
    d = draft_logp.gather(-1, tokens.unsqueeze(-1))
    t = target_logp.gather(-1, tokens.unsqueeze(-1))  # raises
    ok = (t - d).squeeze(-1).exp() > 0.5
    return int(ok.long().cumprod(-1).sum())


class SlotServer:
    """Continuous batching: fixed slots, requests come and go."""

    def __init__(self, model, slots=3, pad=0):
        self.model, self.pad = model, pad
        self.ids = torch.full((slots, 1), pad, device=model.device)
        self.done = torch.ones(slots, dtype=torch.bool)

    def admit(self, prompt):
        slot = int(self.done.nonzero()[0])
        short = prompt.numel() - self.ids.size(1)
        if short > 0:
            self.ids = F.pad(self.ids, (short, 0), value=self.pad)
        self.ids[slot, -prompt.numel():] = prompt
        self.done[slot] = False
        return slot

    @torch.no_grad()
    def tick(self):
        nxt = self.model(self.ids)[:, -1].argmax(-1)
        nxt[self.done] = self.pad
        self.ids = torch.cat([self.ids, nxt.unsqueeze(1)], 1)
        return self.ids

    def retire(self, eos):
        last = self.ids[:, -1]
        self.done = self.done | (last == eos)  # raises


# ---- cases ----------------------------------------------------------------------------------------------------


def case_generate_with_cache():
    tok, model = Tokenizer(), LM().cuda().eval()
    enc = tok(["ab", "cde"]).to(model.device)
    out = generate(model, enc.input_ids, warpers=[TopK(4), RepetitionPenalty()], cache=KVCache(2), stop=StopOn(3, 5), seed=1)
    return [tok.decode(r) for r in out]


def case_generate_banned_tokens():
    tok, model = Tokenizer(), LM().cuda().eval()
    enc = tok(["ab", "cde"]).to(model.device)
    warpers = [TopK(4)]
    warpers.insert(0, BanTokens([1, 2]))
    return generate(model, enc.input_ids, warpers=warpers)


def case_cache_offloaded_between_turns():
    model = LM().cuda().eval()
    cache = KVCache(2)
    ids = Tokenizer()(["hello"]).to("cuda").input_ids
    generate(model, ids, cache=cache, max_new=2)
    cache.offload()
    return generate(model, ids[:, :1], cache=cache, max_new=1)


def case_cache_offloaded_and_reloaded():
    model = LM().cuda().eval()
    cache = KVCache(2)
    ids = Tokenizer()(["hello"]).to("cuda").input_ids
    generate(model, ids, cache=cache, max_new=2)
    cache.offload()
    host = sum(t.numpy().sum() for t in cache.k)
    cache.reload([model.device] * 2)
    return host, generate(model, ids[:, :1], cache=cache, max_new=1).tolist()


def case_static_cache_host_allocated():
    model = LM().cuda().eval()
    ids = Tokenizer()(["abcd"]).to("cuda").input_ids
    return generate(model, ids, cache=StaticCache(model.cfg), max_new=2)


def case_static_cache_by_device():
    model = LM().to("cuda:1").eval()
    ids = Tokenizer()(["abcd"]).to("cuda:1").input_ids
    out = generate(model, ids, cache=StaticCache(model.cfg, device=model.device), max_new=2)
    return out.cpu().numpy()


def case_rotary_tables_rebuilt():
    model = LM().to("cuda:0").eval()
    ids = torch.randint(1, 16, (1, 6))
    a = model(ids.to("cuda:0"))
    model.to("cuda:1")
    b = model(ids[:, :4].to("cuda:1"))
    return torch.allclose(a[:, :4].cpu(), b.cpu(), atol=1e-4)


def case_rotary_tables_grow_only():
    model = LM(rotary=RotaryGrowOnly).to("cuda:0").eval()
    ids = torch.randint(1, 16, (1, 6))
    a = model(ids.to("cuda:0"))
    model.to("cuda:1")
    return a, model(ids[:, :4].to("cuda:1"))


def case_pipeline_with_hop():
    model = PipelinedLM().spread(["cuda:0", "cuda:1"]).eval()
    ids = Tokenizer()(["abc"]).to("cuda:0").input_ids
    logits = model(ids, cache=KVCache(2))
    return F.cross_entropy(logits[0], ids[0]).item()


def case_pipeline_tied_head():
    model = PipelinedNoHop().spread(["cuda:0", "cuda:1"]).eval()
    ids = Tokenizer()(["abc"]).to("cuda:0").input_ids
    return model(ids)


def case_lora_injected_late():
    model = LM().cuda()
    inject_lora(model, r=1)
    opt = torch.optim.AdamW([p for n, p in model.named_parameters() if n.endswith((".a", ".b"))])
    enc = Tokenizer()(["abc", "xy"]).to("cuda")
    logits, loss = model(**enc, labels=enc.input_ids)
    loss.backward()
    opt.step()
    return loss


def case_lora_injected_then_moved():
    model = inject_lora(LM(), r=1)
    model.requires_grad_(False)
    for m in model.modules():
        if isinstance(m, LoRA):
            m.a.requires_grad_(True), m.b.requires_grad_(True)
    model.cuda()
    opt = torch.optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()))
    enc = Tokenizer()(["abc", "xy"], return_lengths=True).to("cuda")
    logits, loss = model(**enc, labels=enc.input_ids)
    loss.backward()
    opt.step()
    return loss.item(), [logits[i, -n:].argmax(-1).tolist() for i, n in enumerate(enc.lengths)]


def case_speculative_on_two_cards():
    draft, target = LM(Config(layers=1)).to("cuda:0").eval(), LM().to("cuda:1").eval()
    ids = torch.randint(1, 16, (1, 3), device="cuda:0")
    tokens = generate(draft, ids, max_new=2)[:, 3:]
    with torch.no_grad():
        seq = torch.cat([ids, tokens], 1)
        dl = draft(seq)[:, 2:4].log_softmax(-1)
        tl = target(seq.to(target.device))[:, 2:4].log_softmax(-1)
    return accept(dl, tl, tokens)


def case_speculative_brought_home():
    draft, target = LM(Config(layers=1)).to("cuda:0").eval(), LM().to("cuda:1").eval()
    ids = torch.randint(1, 16, (1, 3), device="cuda:0")
    tokens = generate(draft, ids, max_new=2, seed=0)[:, 3:]
    with torch.no_grad():
        seq = torch.cat([ids, tokens], 1)
        scores = {m: m(seq.to(m.device))[:, 2:4].log_softmax(-1).to(seq.device) for m in (draft, target)}
    return accept(scores[draft], scores[target], tokens)


def case_slots_ticked():
    server = SlotServer(LM().cuda().eval())
    for text in ("ab", "abcd"):
        server.admit(Tokenizer()([text]).input_ids[0])
    server.tick()
    return server.tick().shape


def case_slots_retired():
    server = SlotServer(LM().cuda().eval())
    server.admit(Tokenizer()(["abc"]).input_ids[0])
    for _ in range(2):
        server.tick()
    server.retire(eos=3)
    return server.done
