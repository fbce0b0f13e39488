"""Parts of a server for language models: caches, processors, samplers, adapters, schedulers of requests."""
import math
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

import torch
import torch.nn as nn
import torch.nn.functional as F

@dataclass(frozen=True)
class ModelConfig:
    vocab: int = 24
    dim: int = 16
    heads: int = 2
    layers: int = 2
    positions: int = 32
    position_kind: str = "rotary"

@dataclass
class SamplingParams:
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    penalty: float = 1.0
    max_tokens: int = 3
    stop: List[int] = field(default_factory=list)
    bias: Dict[int, float] = field(default_factory=dict)
    seed: Optional[int] = None

@dataclass
class Request:
    uid: int
    tokens: List[int]
    params: SamplingParams = field(default_factory=SamplingParams)
    output: List[int] = field(default_factory=list)
    logprobs: List[Any] = field(default_factory=list)

class Rotary(nn.Module):
    def __init__(self, dim, positions):
        super().__init__()
        inv = 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim))
        angle = torch.outer(torch.arange(positions).float(), inv).repeat(1, 2)
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
    def forward(self, x, ids):
        half = torch.cat([-x[..., x.size(-1) // 2:], x[..., : x.size(-1) // 2]], -1)
        return x * self.cos[ids] + half * self.sin[ids]  # raises

def alibi(heads):
    return torch.tensor([2 ** (-8 * (i + 1) / heads) for i in range(heads)])

class DynamicCache:
    def __init__(self):
        self.keys: List[torch.Tensor] = []
        self.values: List[torch.Tensor] = []
    def update(self, layer, k, v):
        if layer == len(self.keys):
            self.keys.append(k)
            self.values.append(v)
        else:
            self.keys[layer] = torch.cat([self.keys[layer], k], dim=-2)  # raises
            self.values[layer] = torch.cat([self.values[layer], v], dim=-2)
        return self.keys[layer], self.values[layer]
    def length(self, layer=0):
        return self.keys[layer].size(-2) if self.keys else 0
    def apply(self, func):
        self.keys, self.values = [func(k) for k in self.keys], [func(v) for v in self.values]
        return self
    def crop(self, size):
        return self.apply(lambda x: x[..., :size, :])
    def reorder(self, index):
        return self.apply(lambda x: x.index_select(0, index.to(x.device)))

class StaticCache(DynamicCache):
    def __init__(self, cfg, batch, size, device=None):
        shape = (batch, cfg.heads, size, cfg.dim // cfg.heads)
        self.used = [0] * cfg.layers
        self.keys = [torch.zeros(shape, device=device) for _ in range(cfg.layers)]
        self.values = [torch.zeros(shape, device=device) for _ in range(cfg.layers)]
    def length(self, layer=0):
        return self.used[layer]
    def update(self, layer, k, v):
        start, stop = self.used[layer], self.used[layer] + k.size(-2)
        self.keys[layer][:, :, start:stop] = k
        self.values[layer][:, :, start:stop] = v
        self.used[layer] = stop
        return self.keys[layer][:, :, :stop], self.values[layer][:, :, :stop]

class OffloadedCache(DynamicCache):
    def __init__(self, bring_back=True):
        super().__init__()
        self.bring_back = bring_back
    def update(self, layer, k, v):
        device = k.device
        if layer < len(self.keys):
            self.keys[layer], self.values[layer] = self.keys[layer].to(device), self.values[layer].to(device)
        k, v = super().update(layer, k, v)
        self.keys[layer], self.values[layer] = k.cpu(), v.cpu()
        return (k, v) if self.bring_back else (self.keys[layer], self.values[layer])

class Attention(nn.Module):
    def __init__(self, cfg, layer):
        super().__init__()
        self.cfg, self.layer, self.d = cfg, layer, cfg.dim // cfg.heads
        self.qkv, self.out = nn.Linear(cfg.dim, 3 * cfg.dim), nn.Linear(cfg.dim, cfg.dim)
        self.rotary = Rotary(self.d, cfg.positions) if cfg.position_kind == "rotary" else None
        self.slopes = alibi(cfg.heads)
    def bias(self, scores, ids):
        distance = torch.arange(scores.size(-1), device=ids.device)[None] - ids[:, None]
        if self.cfg.position_kind == "alibi":
            scores = scores + self.slopes.view(-1, 1, 1) * distance  # raises
        return scores.masked_fill(distance > 0, -1e4)
    def forward(self, x, ids, cache=None):
        b, t, _ = x.shape
        q, k, v = [y.view(b, t, -1, self.d).transpose(1, 2) for y in self.qkv(x).chunk(3, -1)]
        if self.rotary is not None:
            q, k = self.rotary(q, ids), self.rotary(k, ids)
        if cache is not None:
            k, v = cache.update(self.layer, k, v)
        scores = self.bias(torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.d), ids)  # raises
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, -1))

class LoRA(nn.Module):
    def __init__(self, base, rank=2, alpha=4.0):
        super().__init__()
        self.base, self.scale, self.merged = base, alpha / rank, False
        self.adapters: Dict[str, Dict[str, torch.Tensor]] = {}
        self.active = None
        self.rank = rank
    def add(self, name, weights=None, place=True):
        a, b = weights or (torch.randn(self.rank, 16), torch.randn(16, self.rank))
        device = self.base.weight.device if place else a.device
        self.adapters[name] = {"a": a.to(device), "b": b.to(device)}
        self.active = name
        return self
    def delta(self):
        pair = self.adapters[self.active]
        return pair["b"] @ pair["a"] * self.scale
    @torch.no_grad()
    def merge(self):
        self.base.weight += self.delta()  # raises
        self.merged = True
    def forward(self, x):
        out = self.base(x)
        if self.active is not None and not self.merged:
            pair = self.adapters[self.active]
            out = out + F.linear(F.linear(x, pair["a"]), pair["b"]) * self.scale  # raises
        return out

class LM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Embedding(cfg.vocab, cfg.dim)
        self.layers = nn.ModuleList(Attention(cfg, i) for i in range(cfg.layers))
        self.norm = nn.LayerNorm(cfg.dim)
    @property
    def device(self):
        return self.embed.weight.device
    def forward(self, tokens, cache=None, ids=None):
        if ids is None:
            start = cache.length() if cache is not None else 0
            ids = torch.arange(start, start + tokens.size(1), device=self.device)
        h = self.embed(tokens.to(self.device))
        for layer in self.layers:
            h = h + layer(h, ids, cache)
        return F.linear(self.norm(h), self.embed.weight)

class ProcessorList(list):
    @classmethod
    def of(cls, params: SamplingParams, cfg, device):
        made = cls()
        if params.penalty != 1.0:
            made.append(RepetitionPenalty(params.penalty))
        if params.bias:
            made.append(LogitBias(params.bias, cfg.vocab))
        if params.stop:
            made.append(MinLength(2, params.stop, device))
        if params.temperature != 1.0:
            made.append(lambda tokens, logits: logits / torch.tensor(params.temperature))
        if params.top_k:
            made.append(TopK(params.top_k))
        if params.top_p < 1.0:
            made.append(TopP(params.top_p))
        return made
    def __call__(self, tokens, logits):
        for each in self:
            logits = each(tokens, logits)
        return logits

class RepetitionPenalty:
    def __init__(self, penalty):
        self.penalty = penalty
    def __call__(self, tokens, logits):
        score = logits.gather(1, tokens)  # raises
        return logits.scatter(1, tokens, torch.where(score < 0, score * self.penalty, score / self.penalty))

class LogitBias:
    def __init__(self, bias, vocab):
        self.bias = torch.zeros(vocab)
        self.bias[list(bias)] = torch.tensor(list(bias.values()))
    def __call__(self, tokens, logits):
        return logits.add(self.bias)  # raises

class MinLength:
    def __init__(self, size, stop, device):
        self.size, self.stop = size, torch.tensor(stop, device=device)
    def __call__(self, tokens, logits):
        if tokens.size(1) < self.size + 4:
            banned = torch.isin(torch.arange(logits.size(1)).to(logits.device), self.stop.to(logits.device))
            logits = logits.masked_fill(banned, -math.inf)
        return logits

class TopK:
    def __init__(self, k):
        self.k = k
    def __call__(self, tokens, logits):
        return logits.masked_fill(logits < logits.topk(self.k).values[:, -1:], -math.inf)

class TopP:
    def __init__(self, p):
        self.p = torch.tensor(p)
    def __call__(self, tokens, logits):
        ordered, index = logits.sort(descending=True)
        remove = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1) > self.p
        return logits.masked_fill(torch.zeros_like(remove).scatter(1, index, remove), -math.inf)

class AllowedTokens:
    """Constrains the next token by an automaton (state -> tokens)."""
    def __init__(self, table, vocab):
        self.rows = {s: torch.tensor([t not in allowed for t in range(vocab)]) for s, allowed in table.items()}
        self.state = 0
    def __call__(self, tokens, logits):
        logits[:, self.rows[self.state]] = -1e9
        self.state = int(tokens[0, -1]) % len(self.rows)
        return logits

class Sampler:
    def __init__(self, params, device="cuda"):
        self.params, self.generator = params, None
        if params.seed is not None:
            self.generator = torch.Generator(device=device).manual_seed(params.seed)
    def __call__(self, logits):
        if self.params.temperature == 0:
            return logits.argmax(-1, keepdim=True)
        return torch.multinomial(logits.softmax(-1), 1, generator=self.generator)  # raises

class HostSampler(Sampler):
    def __init__(self, params):
        super().__init__(params, "cpu")
    def __call__(self, logits):
        return super().__call__(logits.cpu()).to(logits.device)

class Engine:
    def __init__(self, cfg=ModelConfig(), device="cuda", cache=DynamicCache, sampler=Sampler):
        torch.manual_seed(0)
        self.cfg, self.model = cfg, LM(cfg).to(device).eval()
        self.cache_factory, self.sampler_factory = cache, sampler
        self.prefixes: "OrderedDict[tuple, DynamicCache]" = OrderedDict()
    @torch.no_grad()
    def generate(self, request, cache=None, prompt_device=None):
        tokens = torch.tensor([request.tokens], device=prompt_device or self.model.device)
        processors = ProcessorList.of(request.params, self.cfg, self.model.device)
        sampler, cache = self.sampler_factory(request.params), cache or self.cache_factory()
        step = tokens
        for _ in range(request.params.max_tokens):
            logits = self.model(step, cache)[:, -1]
            chosen = sampler(processors(tokens, logits))
            request.logprobs.append(logits.log_softmax(-1).gather(1, chosen))
            step, tokens = chosen, torch.cat([tokens, chosen], dim=1)  # raises
            request.output.append(chosen.item())
            if chosen[0, 0] in request.params.stop:
                break
        return tokens, cache
    def summary(self, requests):
        scores = torch.cat([torch.cat(r.logprobs, 1).mean(1) for r in requests])
        return dict(zip([r.uid for r in requests], scores.tolist()))
    @torch.no_grad()
    def with_prefix(self, prefix, request):
        key = tuple(prefix)
        if key not in self.prefixes:
            self.prefixes[key] = DynamicCache()
            self.model(torch.tensor([prefix], device=self.model.device), self.prefixes[key])
            self.prefixes[key].apply(torch.Tensor.cpu)
        stored = self.prefixes[key]
        cache = DynamicCache()
        cache.keys, cache.values = list(stored.keys), list(stored.values)
        return self.generate(request, cache)
    def move(self, device):
        self.model.to(device)
        for cache in self.prefixes.values():
            cache.apply(lambda x: x.to(device))
        return self
    @torch.no_grad()
    def beam(self, tokens, beams=2, steps=3, lengths=None):
        tokens, cache = torch.tensor([tokens] * beams, device=self.model.device), DynamicCache()
        scores = torch.tensor([0.0] + [-1e9] * (beams - 1)).to(tokens.device)
        step = tokens
        for _ in range(steps):
            logp = self.model(step, cache)[:, -1].log_softmax(-1)
            scores, flat = (scores[:, None] + logp).flatten().topk(beams)
            parent, step = torch.div(flat, self.cfg.vocab, rounding_mode="floor"), (flat % self.cfg.vocab)[:, None]
            tokens = torch.cat([tokens[parent], step], dim=1)
            cache.reorder(parent)
        if lengths is not None:
            scores = scores / torch.tensor([float(n) for n in lengths]) ** 0.6  # raises
        return tokens[scores.argmax()].tolist()

class Speculative:
    def __init__(self, target, draft, k=2):
        self.target, self.draft, self.k = target, draft, k
    def propose(self, tokens):
        ids, probs = tokens, []
        for _ in range(self.k):
            probs.append(self.draft.model(ids)[:, -1].softmax(-1))
            ids = torch.cat([ids, probs[-1].argmax(-1, keepdim=True).to(ids.device)], dim=1)
        return ids[:, -self.k:], torch.stack(probs, 1)
    @torch.no_grad()
    def step(self, prompt, careful=True):
        tokens = torch.tensor([prompt], device=self.draft.model.device)
        guess, q = self.propose(tokens)
        p = self.target.model(torch.cat([tokens, guess], 1).to(self.target.model.device))[:, -self.k - 1:].softmax(-1)
        if careful:
            guess, q = guess.to(p.device), q.to(p.device)
        ratio = p[:, :-1].gather(2, guess[..., None]) / q.gather(2, guess[..., None])  # raises
        accepted = int((torch.rand(ratio.shape).to(ratio) < ratio).long().cumprod(1).sum())
        residual = (p[:, accepted] - (q[:, accepted] if accepted < self.k else 0)).clamp(min=0)
        return guess[0, :accepted].tolist() + [residual.argmax().item()]

def request(n=4, uid=0, **params):
    return Request(uid, list(range(1, n + 1)), SamplingParams(**params))

def case_generate_greedy():
    engine, requests = Engine(), [request(uid=i, temperature=0) for i in range(2)]
    for each in requests:
        engine.generate(each)
    return engine.summary(requests)
def case_generate_with_top_p():
    return Engine().generate(request(top_p=0.8, top_k=5, temperature=0.7, stop=[3]))[0].cpu().numpy()
def case_generate_prompt_on_host():
    return Engine().generate(request(temperature=0), prompt_device="cpu")
def case_penalty_with_tokens_of_host():
    engine, tokens = Engine(), torch.tensor([[1, 2, 3]])
    logits = engine.model(tokens.cuda())[:, -1].detach()
    return ProcessorList.of(SamplingParams(penalty=1.3), engine.cfg, "cuda")(tokens, logits)
def case_penalty():
    return Engine().generate(request(penalty=1.3, seed=3))
def case_logit_bias():
    return Engine().generate(request(bias={2: 4.0, 7: -1.0}))
def case_seeded_second_gpu():
    return Engine(device="cuda:1", sampler=lambda params: Sampler(params, "cuda:1")).generate(request(seed=1))
def case_seeded_by_host_generator():
    return Engine(sampler=lambda params: Sampler(params, "cpu")).generate(request(seed=1))
def case_positions_given():
    engine, ids = Engine(device="cuda:2"), torch.arange(4, device="cuda:0")
    return engine.model(torch.ones(1, 4, dtype=torch.long), ids=ids)
def case_seeded_on_host():
    return Engine(device="cuda:1", sampler=HostSampler).generate(request(seed=1, top_k=3))
def case_allowed_tokens():
    engine, tokens = Engine(), torch.tensor([[4, 5]], device="cuda")
    rule = AllowedTokens({0: {1, 2}, 1: {3}}, engine.cfg.vocab)
    return [rule(tokens, engine.model(tokens)[:, -1].detach()).argmax(-1).item() for _ in range(2)]
def case_alibi():
    return Engine(ModelConfig(position_kind="alibi")).generate(request())
def case_static_cache_default():
    cfg = ModelConfig()
    return Engine(cfg, cache=lambda: StaticCache(cfg, 1, 16)).generate(request())
def case_static_cache_placed():
    cfg = ModelConfig()
    return Engine(cfg, cache=lambda: StaticCache(cfg, 1, 16, "cuda")).generate(request())
def case_offloaded_cache():
    return Engine(cache=OffloadedCache).generate(request(n=6))[1].crop(3).keys[0].numpy()
def case_prefix_reused():
    engine = Engine()
    return engine.with_prefix([5, 6, 7], request())
def case_prefix_reused_after_move():
    engine = Engine()
    engine.prefixes[(5, 6)] = engine.generate(request(), OffloadedCache())[1]
    return engine.move("cuda").with_prefix([5, 6], request(temperature=0))[0].tolist()
def case_adapter():
    layer = LoRA(nn.Linear(16, 16).cuda()).add("a")
    layer.merge()
    return layer.add("b")(torch.randn(2, 16, device="cuda"))
def case_adapter_added_before_move():
    return LoRA(nn.Linear(16, 16)).add("a").cuda()(torch.randn(2, 16, device="cuda"))
def case_adapter_merged_from_file():
    weights = torch.randn(2, 16), torch.randn(16, 2)
    return LoRA(nn.Linear(16, 16).to("cuda:2")).add("a", weights, place=False).merge()
def case_beam():
    return Engine(device="cuda:3").beam([1, 2, 3])
def case_beam_length_penalty():
    return Engine().beam([1, 2, 3], lengths=[6, 6])
def case_speculative_two_gpus():
    return Speculative(Engine(device="cuda:1"), Engine(ModelConfig(layers=1))).step([1, 2, 3])
def case_speculative_two_gpus_careless():
    return Speculative(Engine(device="cuda:1"), Engine(ModelConfig(layers=1))).step([1, 2, 3], careful=False)
