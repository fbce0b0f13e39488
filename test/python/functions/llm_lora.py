"""Fine-tuning of a tiny decoder with low-rank adapters, packed sequences and a key/value cache."""
import math
import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import Iterable, List, NamedTuple, Optional

import torch
import torch.nn as nn
import torch.nn.functional as F

IGNORE_INDEX = -100


@dataclass
class LoraConfig:
    r: int = 4
    alpha: int = 8
    dropout: float = 0.0
    target_modules: str = r".*\.(q_proj|v_proj)$"

    @property
    def scaling(self):
        return self.alpha / self.r


@dataclass
class DecoderConfig:
    vocab_size: int = 48
    hidden: int = 16
    heads: int = 2
    layers: int = 2
    max_positions: int = 32


class Packed(NamedTuple):
    input_ids: torch.Tensor
    labels: torch.Tensor
    position_ids: torch.Tensor
    segments: torch.Tensor

    def to(self, device):
        return Packed(*(t.to(device, non_blocking=True) for t in self))


def _pack(sequences: Iterable[List[int]], length: int) -> Packed:
    ids, labels, positions, segments = [], [], [], []
    for number, sequence in enumerate(sequences, 1):
        ids += sequence
        labels += [IGNORE_INDEX] + sequence[1:]
        positions += list(range(len(sequence)))
        segments += [number] * len(sequence)
    pad = length - len(ids)
    rows = (ids + [0] * pad, labels + [IGNORE_INDEX] * pad, positions + [0] * pad, segments + [0] * pad)
    return Packed(*(torch.tensor(row).unsqueeze(0) for row in rows))


class LoraLinear(nn.Module):
    def __init__(self, base: nn.Linear, cfg: LoraConfig):
        super().__init__()
        self.base, self.cfg = base, cfg
        self.lora_A = nn.Parameter(torch.empty(cfg.r, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, cfg.r))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self.base.requires_grad_(False)
        self.merged = False

    def delta(self):
        return (self.lora_B @ self.lora_A) * self.cfg.scaling

    @torch.no_grad()
    def merge(self):
        self.base.weight += self.delta().to(self.base.weight.device)
        self.merged = True

    def forward(self, x):
        out = self.base(x)
        if self.merged:
            return out
        hidden = F.dropout(x, self.cfg.dropout, self.training)
        return out + F.linear(F.linear(hidden, self.lora_A), self.lora_B) * self.cfg.scaling  # raises


class Rotary(nn.Module):
    def __init__(self, dim, max_positions, base=10000.0):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / base ** (torch.arange(0, dim, 2).float() / dim), persistent=False)
        self.cos_cached = self.sin_cached = None
        self._extend(max_positions)

    def _extend(self, length):
        t = torch.arange(length, device=self.inv_freq.device).type_as(self.inv_freq)
        freqs = torch.einsum("i,j->ij", t, self.inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        self.cos_cached, self.sin_cached = emb.cos(), emb.sin()

    def forward(self, position_ids):
        needed = int(position_ids.max()) + 1
        if self.cos_cached.shape[0] < needed or self.cos_cached.device != self.inv_freq.device:
            self._extend(max(needed, self.cos_cached.shape[0]))
        return self.cos_cached[position_ids].unsqueeze(1), self.sin_cached[position_ids].unsqueeze(1)


def _rotate(x, cos, sin):
    x1, x2 = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-x2, x1), dim=-1) * sin


class Attention(nn.Module):
    def __init__(self, cfg: DecoderConfig):
        super().__init__()
        self.heads, self.head_dim = cfg.heads, cfg.hidden // cfg.heads
        self.q_proj = nn.Linear(cfg.hidden, cfg.hidden, bias=False)
        self.k_proj = nn.Linear(cfg.hidden, cfg.hidden, bias=False)
        self.v_proj = nn.Linear(cfg.hidden, cfg.hidden, bias=False)
        self.o_proj = nn.Linear(cfg.hidden, cfg.hidden, bias=False)
        self.rotary = Rotary(self.head_dim, cfg.max_positions)

    def _split(self, x):
        return x.view(x.shape[0], -1, self.heads, self.head_dim).transpose(1, 2)

    def forward(self, x, mask, position_ids, past=None):
        q, k, v = self._split(self.q_proj(x)), self._split(self.k_proj(x)), self._split(self.v_proj(x))
        cos, sin = self.rotary(position_ids)
        q, k = _rotate(q, cos, sin), _rotate(k, cos, sin)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)  # raises
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.head_dim)
        probs = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1)
        return self.o_proj((probs @ v).transpose(1, 2).reshape(x.shape)), (k, v)


class Decoder(nn.Module):
    def __init__(self, cfg: DecoderConfig):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Embedding(cfg.vocab_size, cfg.hidden)
        self.layers = nn.ModuleList([nn.ModuleDict({"attn": Attention(cfg), "norm": nn.LayerNorm(cfg.hidden)})
                                     for _ in range(cfg.layers)])
        self.head = nn.Linear(cfg.hidden, cfg.vocab_size, bias=False)

    def forward(self, input_ids, position_ids=None, segments=None, past=None):
        x = self.embed(input_ids)  # raises
        length, offset = input_ids.shape[1], past[0][0].shape[2] if past else 0
        if position_ids is None:
            position_ids = torch.arange(offset, offset + length, device=x.device).unsqueeze(0)
        mask = torch.ones(length, offset + length, dtype=torch.bool, device=x.device).tril(offset)
        if segments is not None:
            mask = mask & (segments.unsqueeze(-1) == segments.unsqueeze(-2)).unsqueeze(1)
        cache = []
        for number, layer in enumerate(self.layers):
            out, present = layer["attn"](layer["norm"](x), mask, position_ids, past[number] if past else None)
            x = x + out
            cache.append(present)
        return self.head(x), cache

    def resize_token_embeddings(self, size):
        old = self.embed
        self.embed = nn.Embedding(size, self.cfg.hidden)
        self.embed.weight.data[:old.num_embeddings] = old.weight.data
        self.head = nn.Linear(self.cfg.hidden, size, bias=False).to(old.weight)


def _inject(model, cfg: LoraConfig):
    for name, module in list(model.named_modules()):
        if isinstance(module, nn.Linear) and re.match(cfg.target_modules, name):
            parent = model.get_submodule(name.rpartition(".")[0])
            setattr(parent, name.rpartition(".")[2], LoraLinear(module, cfg))
    return model


class AdapterTrainer:
    def __init__(self, model, lr=1e-2, token_weights: Optional[torch.Tensor] = None):
        self.model = model
        self.params = [p for p in model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(self.params, lr=lr)
        self.criterion = nn.CrossEntropyLoss(weight=token_weights, ignore_index=IGNORE_INDEX)

    def step(self, batch: Packed):
        logits, _ = self.model(batch.input_ids, batch.position_ids, batch.segments)
        loss = self.criterion(logits[:, :-1].flatten(0, 1), batch.labels[:, 1:].flatten())  # raises
        loss.backward()
        nn.utils.clip_grad_norm_(self.params, 1.0)
        self.optimizer.step()  # raises
        self.optimizer.zero_grad(set_to_none=True)
        return loss.item()


class RepetitionPenalty:
    def __init__(self, penalty=1.2):
        self.penalty = penalty

    def __call__(self, history, scores):
        score = torch.gather(scores, 1, history)  # raises
        return scores.scatter(1, history, torch.where(score < 0, score * self.penalty, score / self.penalty))


class SuppressTokens:
    def __init__(self, tokens):
        self.tokens = torch.tensor(sorted(tokens))

    def __call__(self, history, scores):
        scores[:, self.tokens] = -float("inf")
        return scores


@torch.no_grad()
def _generate(model, prompt, processors=(), steps=3, offload=False):
    device = model.embed.weight.device
    generated, past, ids = prompt, None, prompt.to(device)
    for _ in range(steps):
        logits, past = model(ids, past=past)
        scores = logits[:, -1]
        for processor in processors:
            scores = processor(generated, scores)
        ids = scores.argmax(dim=-1, keepdim=True)
        generated = torch.cat([generated, ids.to(generated.device)], dim=1)
        if offload:
            past = [(k.cpu(), v.cpu()) for k, v in past]
    return generated


_SEQUENCES = [[5, 6, 7, 8], [9, 10, 11], [12, 13, 14, 15, 16]]


def case_packed_finetune():
    model = _inject(Decoder(DecoderConfig()), LoraConfig()).cuda()
    trainer = AdapterTrainer(model)
    for _ in range(2):
        trainer.step(_pack(_SEQUENCES, 16).to("cuda"))


def case_inject_into_loaded_model():
    model = _inject(Decoder(DecoderConfig()).to("cuda"), LoraConfig(r=2))
    AdapterTrainer(model).step(_pack(_SEQUENCES, 16).to("cuda"))


def case_merge_before_serving():
    model = _inject(Decoder(DecoderConfig()).to("cuda"), LoraConfig(r=2))
    for module in model.modules():
        if isinstance(module, LoraLinear):
            module.merge()
    _generate(model, torch.tensor([[3, 4, 5]]), [SuppressTokens({0, 1})])


def case_adapter_state_from_disk():
    model = _inject(Decoder(DecoderConfig()).to("cuda"), LoraConfig())
    adapters = OrderedDict((k, torch.zeros_like(v).cuda()) for k, v in model.state_dict().items() if "lora_" in k)
    model.load_state_dict(adapters, strict=False)
    model.cuda()(torch.tensor([[1, 2, 3]], device="cuda"))


def case_weighted_tokens():
    cfg = DecoderConfig()
    weights = torch.ones(cfg.vocab_size)
    weights[:4] = 0.1
    trainer = AdapterTrainer(_inject(Decoder(cfg), LoraConfig()).cuda(), token_weights=weights)
    trainer.step(_pack(_SEQUENCES, 16).to("cuda"))


def case_weighted_tokens_module_moved():
    cfg = DecoderConfig()
    trainer = AdapterTrainer(_inject(Decoder(cfg), LoraConfig()).cuda(), token_weights=torch.ones(cfg.vocab_size))
    trainer.criterion.cuda()
    trainer.step(_pack(_SEQUENCES, 16).to("cuda"))


def case_warm_up_on_cpu():
    model = _inject(Decoder(DecoderConfig()), LoraConfig())
    trainer = AdapterTrainer(model)
    trainer.step(_pack(_SEQUENCES, 16))
    model.cuda()
    trainer.step(_pack(_SEQUENCES, 16).to("cuda"))


def case_resume_optimizer():
    model = _inject(Decoder(DecoderConfig()), LoraConfig())
    first = AdapterTrainer(model)
    first.step(_pack(_SEQUENCES, 16))
    state = first.optimizer.state_dict()
    second = AdapterTrainer(model.cuda())
    second.optimizer.load_state_dict(state)
    second.step(_pack(_SEQUENCES, 16).to("cuda"))


def case_new_special_tokens():
    model = Decoder(DecoderConfig()).cuda()
    model.resize_token_embeddings(52)
    logits, _ = model(torch.tensor([[48, 3, 49]], device="cuda"))
    assert logits.shape[-1] == 52


def case_offloaded_cache():
    _generate(Decoder(DecoderConfig()).cuda().eval(), torch.tensor([[3, 4]]).cuda(), offload=True)


def case_penalty_on_prompt():
    model = Decoder(DecoderConfig()).cuda().eval()
    _generate(model, torch.tensor([[3, 4, 4]]), [SuppressTokens([0]), RepetitionPenalty()])
