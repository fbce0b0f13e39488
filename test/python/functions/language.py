import copy
import json
import re
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


class WordTokenizer:
    specials = ["<pad>", "<bos>", "<eos>", "<unk>"]

    def __init__(self, corpus):
        words = sorted({w for line in corpus for w in self.split(line)})
        self.itos = self.specials + words
        self.stoi = {w: i for i, w in enumerate(self.itos)}

    @staticmethod
    def split(line):
        return re.findall(r"\w+", line.lower())

    def encode(self, line):
        return [1] + [self.stoi.get(w, 3) for w in self.split(line)] + [2]

    def __call__(self, lines, return_lengths=False):
        ids = [torch.tensor(self.encode(line)) for line in lines]
        batch = {"input_ids": pad_sequence(ids, batch_first=True)}
        batch["attention_mask"] = (batch["input_ids"] != 0).long()
        if return_lengths:
            batch["lengths"] = torch.tensor([len(i) for i in ids])
        return batch

    def decode(self, ids):
        return " ".join(self.itos[i] for i in ids if i > 2)

    def __len__(self):
        return len(self.itos)


CORPUS = ["the cat sat on the mat", "a dog barked", "birds of a feather flock together"]


@dataclass
class LMConfig:
    vocab_size: int
    dim: int = 16
    heads: int = 2
    layers: int = 2
    max_len: int = 32
    dropout: float = 0.0
    device: str = "cuda"
    extra: Dict[str, Any] = field(default_factory=dict)


class CausalSelfAttention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim)
        self.proj = nn.Linear(cfg.dim, cfg.dim)
        self.heads = cfg.heads
        self.register_buffer("tril", torch.tril(torch.ones(cfg.max_len, cfg.max_len)).bool()[None, None])

    def forward(self, x, key_mask=None):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, dim=-1))
        att = q @ k.transpose(-2, -1) / (c // self.heads) ** 0.5
        att = att.masked_fill(~self.tril[:, :, :t, :t], float("-inf"))
        if key_mask is not None:
            att = att.masked_fill(key_mask[:, None, None, :] == 0, torch.finfo(att.dtype).min)
        return self.proj((att.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(cfg.dim), nn.LayerNorm(cfg.dim)
        self.attn = CausalSelfAttention(cfg)
        self.mlp = nn.Sequential(nn.Linear(cfg.dim, 4 * cfg.dim), nn.GELU(), nn.Linear(4 * cfg.dim, cfg.dim))

    def forward(self, x, mask=None):
        x = x + self.attn(self.ln1(x), mask)
        return x + self.mlp(self.ln2(x))


class TinyGPT(nn.Module):
    def __init__(self, cfg: LMConfig):
        super().__init__()
        self.cfg = cfg
        self.tok = nn.Embedding(cfg.vocab_size, cfg.dim)
        self.pos = nn.Embedding(cfg.max_len, cfg.dim)
        self.blocks = nn.ModuleList(Block(cfg) for _ in range(cfg.layers))
        self.head = nn.Linear(cfg.dim, cfg.vocab_size, bias=False)
        self.head.weight = self.tok.weight

    @property
    def device(self):
        return self.tok.weight.device

    def forward(self, input_ids, attention_mask=None, labels=None):
        positions = torch.arange(input_ids.size(1), device=input_ids.device)
        h = self.tok(input_ids) + self.pos(positions)
        for block in self.blocks:
            h = block(h, attention_mask)
        logits = self.head(h)
        if labels is None:
            return logits
        loss = F.cross_entropy(logits[:, :-1].reshape(-1, logits.size(-1)), labels[:, 1:].reshape(-1), ignore_index=0)
        return logits, loss

    @torch.no_grad()
    def generate(self, ids, n=4, temperature=1.0):
        for _ in range(n):
            logits = self(ids[:, -self.cfg.max_len:])[:, -1] / temperature
            nxt = torch.multinomial(logits.softmax(-1), 1)
            ids = torch.cat([ids, nxt], dim=1)
        return ids

    @torch.no_grad()
    def generate_greedy(self, ids, n=4):
        finished = torch.zeros(ids.size(0), dtype=torch.bool)
        for _ in range(n):
            nxt = self(ids)[:, -1].argmax(-1)
            nxt = nxt.masked_fill(finished, 0)  # raises
            finished = finished | (nxt == 2).cpu()
            ids = torch.cat([ids, nxt[:, None]], dim=1)
        return ids


def _make():
    tok = WordTokenizer(CORPUS)
    cfg = LMConfig(vocab_size=len(tok))
    return tok, TinyGPT(cfg).to(cfg.device)


def case_lm_loss_then_sample():
    tok, model = _make()
    batch = {k: v.to(model.device) for k, v in tok(CORPUS).items()}
    logits, loss = model(**batch, labels=batch["input_ids"])
    loss.backward()
    out = model.generate(batch["input_ids"][:, :3])
    return [tok.decode(row) for row in out.tolist()]


def case_greedy_finished_flags():
    tok, model = _make()
    prompt = tok(["the cat"])["input_ids"].to(model.device)
    return model.generate_greedy(prompt)


def case_prompt_kept_on_host():
    tok, model = _make()
    model.eval()
    inputs = tok(["a dog", "the mat"])
    prompt = inputs["input_ids"]
    return model(prompt.to(model.device), inputs["attention_mask"].to("cuda")), model.generate(prompt.cuda(), n=2)[:, :1].cpu() == prompt[:, :1]


def evaluate_perplexity(model, tok, lines, device):
    nll, count = 0.0, 0
    for i in range(0, len(lines), 2):
        enc = tok(lines[i:i + 2], return_lengths=True)
        ids, lengths = enc["input_ids"].to(device), enc["lengths"]
        logits = model(ids)
        logp = F.log_softmax(logits[:, :-1], -1).gather(2, ids[:, 1:, None]).squeeze(-1)
        nll -= (logp * enc["attention_mask"][:, 1:]).sum().item()  # raises
        count += int(lengths.sum()) - len(lengths)
    return nll / count


def case_perplexity_mask_from_tokenizer():
    tok, model = _make()
    with torch.no_grad():
        return evaluate_perplexity(model, tok, CORPUS, model.device)


class BiLSTMTagger(nn.Module):
    def __init__(self, vocab, tags, dim=8):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.rnn = nn.LSTM(dim, dim, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * dim, tags)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.emb(x), lengths.cpu(), batch_first=True, enforce_sorted=False)
        h, lens = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        mask = torch.arange(h.size(1))[None, :] < lens[:, None]
        return self.out(h), mask


class CRFLayer(nn.Module):
    def __init__(self, tags):
        super().__init__()
        self.trans = nn.Parameter(torch.randn(tags, tags) * 0.1)
        self.start = nn.Parameter(torch.zeros(tags))

    def viterbi(self, emissions, lens):
        paths = []
        for e, n in zip(emissions, lens.tolist()):
            score = self.start + e[0]
            back = []
            for t in range(1, n):
                s = score[:, None] + self.trans + e[t]
                score, idx = s.max(0)
                back.append(idx)
            best = [int(score.argmax())]
            for idx in reversed(back):
                best.append(int(idx[best[-1]]))
            paths.append(best[::-1])
        return paths


def case_tagger_mask_selects_logits():
    tok = WordTokenizer(CORPUS)
    tagger = BiLSTMTagger(len(tok), 5).cuda()
    crf = CRFLayer(5).cuda()
    enc = tok(CORPUS, return_lengths=True)
    logits, mask = tagger(enc["input_ids"].cuda(), enc["lengths"].cuda())
    flat = logits[mask]
    paths = crf.viterbi(logits, mask.sum(1))
    return flat.shape[0] == sum(len(p) for p in paths)


def case_tagger_masked_mean():
    tok = WordTokenizer(CORPUS)
    tagger = BiLSTMTagger(len(tok), 5).cuda()
    enc = tok(CORPUS, return_lengths=True)
    logits, mask = tagger(enc["input_ids"].cuda(), enc["lengths"])
    denom = mask.sum(1, keepdim=True).clamp(min=1)
    pooled = (logits * mask.unsqueeze(-1)).sum(1) / denom  # raises
    return pooled


class Beam(NamedTuple):
    tokens: torch.Tensor
    score: float


def beam_search(step, bos: int, width: int, steps: int, device) -> List[Beam]:
    beams = [Beam(torch.tensor([[bos]], device=device), 0.0)]
    for _ in range(steps):
        grown = []
        for beam in beams:
            logp = step(beam.tokens).log_softmax(-1)[0, -1]
            values, idx = logp.topk(width)
            for v, i in zip(values.tolist(), idx):
                grown.append(Beam(torch.cat([beam.tokens, i.view(1, 1)], 1), beam.score + v))
        beams = sorted(grown, key=lambda b: -b.score)[:width]
    return beams


def case_beam_search_named_tuples():
    tok, model = _make()
    with torch.no_grad():
        beams = beam_search(model, 1, 2, 3, model.device)
    lengths = torch.tensor([b.tokens.size(1) for b in beams])
    scores = torch.tensor([b.score for b in beams]) / lengths
    return beams[int(scores.argmax())].tokens


def rerank(model, beams, penalty=0.6):
    lengths = torch.tensor([float(b.tokens.size(1)) for b in beams])
    scores = torch.stack([model(b.tokens).log_softmax(-1).amax(-1).sum() for b in beams])
    return int((scores / lengths ** penalty).argmax())  # raises


def case_beam_rerank_length_penalty():
    tok, model = _make()
    model.eval()
    with torch.no_grad():
        beams = beam_search(model, 1, 2, 3, model.device)
        return beams[rerank(model, beams)]


class RepetitionPenalty:
    def __init__(self, penalty):
        self.penalty = penalty

    def __call__(self, ids, scores):
        picked = torch.gather(scores, 1, ids)
        picked = torch.where(picked < 0, picked * self.penalty, picked / self.penalty)
        return scores.scatter(1, ids, picked)


class BadWords:
    def __init__(self, ids, vocab):
        self.bias = torch.zeros(vocab)
        self.bias[ids] = float("-inf")

    def __call__(self, ids, scores):
        return scores + self.bias  # raises


class SuppressTokens:
    def __init__(self, ids):
        self.ids = torch.tensor(list(ids))

    def __call__(self, ids, scores):
        scores[:, self.ids] = -float("inf")
        return scores


class ProcessorList(list):
    def __call__(self, ids, scores):
        for p in self:
            scores = p(ids, scores)
        return scores


def case_logits_processors():
    tok, model = _make()
    ids = tok(CORPUS)["input_ids"].cuda()
    processors = ProcessorList([RepetitionPenalty(1.3), SuppressTokens(range(4))])
    with torch.no_grad():
        scores = processors(ids, model(ids)[:, -1])
    return scores.argmax(-1)


def case_logits_processors_bad_words():
    tok, model = _make()
    ids = tok(CORPUS)["input_ids"].cuda()
    processors = ProcessorList()
    processors.append(RepetitionPenalty(1.1))
    processors.append(BadWords([0, 3], len(tok)))
    with torch.no_grad():
        return processors(ids, model(ids)[:, -1]).argmax(-1)


class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, r=2, alpha=4):
        super().__init__()
        self.base = base
        self.scale = alpha / r
        self.A = nn.Parameter(torch.randn(r, base.in_features) * 0.02)
        self.B = nn.Parameter(torch.zeros(base.out_features, r))

    def forward(self, x):
        return self.base(x) + (x @ self.A.t() @ self.B.t()) * self.scale  # raises

    def merge(self):
        return self.base.weight + self.scale * self.B @ self.A


def inject_lora(model, match="qkv"):
    for name, module in list(model.named_modules()):
        if name.endswith(match) and isinstance(module, nn.Linear):
            parent = model.get_submodule(name.rpartition(".")[0])
            setattr(parent, match, LoRALinear(module))
    return model


def case_lora_injected_after_move():
    tok, model = _make()
    model.requires_grad_(False)
    inject_lora(model)
    ids = tok(CORPUS)["input_ids"].to(model.device)
    return model(ids)


def case_lora_injected_before_move():
    tok = WordTokenizer(CORPUS)
    model = inject_lora(TinyGPT(LMConfig(vocab_size=len(tok), dim=8))).cuda()
    ids = tok(CORPUS)["input_ids"].to(model.device)
    _, loss = model(ids, labels=ids)
    loss.backward()
    return [blk.attn.qkv.merge().norm() for blk in model.blocks]
