"""Autoregressive decoding: logits processors, beam search and sampling."""
from typing import Callable, List, Optional, Tuple

import torch
import torch.nn.functional as F

NEG_INF = float("-inf")


class LogitsProcessorList(list):
    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        for processor in self:
            scores = processor(input_ids, scores)
        return scores


class RepetitionPenalty:
    def __init__(self, penalty: float):
        self.penalty = penalty

    def __call__(self, input_ids, scores):
        score = torch.gather(scores, 1, input_ids)
        score = torch.where(score < 0, score * self.penalty, score / self.penalty)
        return scores.scatter(1, input_ids, score)


class NoRepeatNGram:
    def __init__(self, ngram_size: int):
        self.n = ngram_size

    def _banned(self, tokens: List[int]) -> List[int]:
        prefix = tuple(tokens[len(tokens) - self.n + 1:])
        return [tokens[i + self.n - 1] for i in range(len(tokens) - self.n + 1) if tuple(tokens[i:i + self.n - 1]) == prefix]

    def __call__(self, input_ids, scores):
        for i, row in enumerate(input_ids):
            scores[i, self._banned(row.tolist())] = NEG_INF
        return scores


class BadWords:
    def __init__(self, bad_ids: List[int]):
        self.bad_ids = bad_ids
        self.mask: Optional[torch.Tensor] = None

    def _build(self, vocab: int) -> torch.Tensor:
        mask = torch.zeros(vocab, dtype=torch.bool)
        mask[self.bad_ids] = True
        return mask

    def __call__(self, input_ids, scores):
        if self.mask is None:
            self.mask = self._build(scores.size(-1))
        return scores.masked_fill(self.mask, NEG_INF)  # raises


class LengthBias:
    def __init__(self, table: torch.Tensor):
        self.table = table

    def __call__(self, input_ids, scores):
        return scores + self.table[min(input_ids.size(1), len(self.table) - 1)]


class StopOnSequences:
    def __init__(self, sequences: List[List[int]]):
        self.sequences = [torch.tensor(s) for s in sequences]

    def __call__(self, input_ids: torch.LongTensor) -> bool:
        for stop in self.sequences:
            if bool((input_ids[0, -len(stop):] == stop).all()):  # raises
                return True
        return False


def top_k_top_p_filtering(logits: torch.Tensor, top_k: int = 0, top_p: float = 1.0) -> torch.Tensor:
    if top_k > 0:
        kth = logits.topk(top_k)[0][..., -1, None]
        logits = logits.masked_fill(logits < kth, NEG_INF)
    if top_p < 1.0:
        ordered, idx = torch.sort(logits, descending=True)
        remove = ordered.softmax(-1).cumsum(-1) > top_p
        remove[..., 1:] = remove[..., :-1].clone()
        remove[..., 0] = 0
        logits = logits.masked_fill(torch.zeros_like(remove).scatter(1, idx, remove), NEG_INF)
    return logits


def expand_encoder(hidden: torch.Tensor, num_beams: int) -> torch.Tensor:
    idx = torch.arange(hidden.size(0)).view(-1, 1).repeat(1, num_beams).view(-1)
    return hidden.index_select(0, idx)  # raises


def expand_ids(ids: torch.Tensor, num_beams: int) -> torch.Tensor:
    rows = torch.arange(ids.size(0)).view(-1, 1).expand(-1, num_beams).reshape(-1)
    return ids[rows]


def reorder_cache(past: Tuple[torch.Tensor, ...], beam_idx: torch.Tensor) -> Tuple[torch.Tensor, ...]:
    return tuple(layer.index_select(0, beam_idx.to(layer.device)) for layer in past)


class Generator:
    def __init__(self, step: Callable, bos: int = 0, eos: int = 1, pad: int = 2, processors=()):
        self.step, self.bos, self.eos, self.pad = step, bos, eos, pad
        self.processors = LogitsProcessorList(processors)

    @torch.no_grad()
    def sample(self, ids: torch.Tensor, max_len: int = 6, top_k: int = 0, stop: Optional[Callable] = None) -> torch.Tensor:
        unfinished = torch.ones(ids.size(0), dtype=torch.long)
        while ids.size(1) < max_len:
            probs = top_k_top_p_filtering(self.processors(ids, self.step(ids)), top_k).softmax(-1)
            nxt = torch.multinomial(probs, 1).squeeze(1)
            nxt = nxt * unfinished + self.pad * (1 - unfinished)  # raises
            unfinished = unfinished * (nxt != self.eos).long()
            ids = torch.cat([ids, nxt[:, None]], dim=1)
        return ids

    @torch.no_grad()
    def greedy(self, batch: int, device: torch.device, max_len: int = 6) -> torch.Tensor:
        ids = torch.full((batch, 1), self.bos, dtype=torch.long, device=device)
        done = ids.new_zeros(batch, dtype=torch.bool)
        while ids.size(1) < max_len and not done.all():
            nxt = self.processors(ids, self.step(ids)).argmax(-1)
            nxt = torch.where(done, torch.full_like(nxt, self.pad), nxt)
            done |= nxt == self.eos
            ids = torch.cat([ids, nxt[:, None]], dim=1)
        return ids

    def _init_scores(self, batch: int, beams: int, device=None) -> torch.Tensor:
        scores = torch.zeros(batch, beams, device=device)
        scores[:, 1:] = -1e9
        return scores.view(-1)

    @torch.no_grad()
    def beam(self, ids: torch.Tensor, beams: int = 2, max_len: int = 5) -> torch.Tensor:
        B = ids.size(0)
        ids, total = expand_ids(ids, beams), self._init_scores(B, beams)
        while ids.size(1) < max_len:
            logp = F.log_softmax(self.step(ids), dim=-1)
            V = logp.size(-1)
            total, flat = (logp + total[:, None]).view(B, -1).topk(beams)  # raises
            parent = torch.div(flat, V, rounding_mode="floor") + torch.arange(B, device=flat.device)[:, None] * beams
            ids = torch.cat([ids[parent.view(-1)], (flat % V).view(-1, 1)], dim=1)
            total = total.view(-1)
        return ids.view(B, beams, -1)[:, 0]


def speculative_accept(p: torch.Tensor, q: torch.Tensor, drafted: torch.Tensor) -> int:
    ratio = (p / q).gather(-1, drafted.unsqueeze(-1)).squeeze(-1)
    rejected = torch.rand(len(drafted)) > ratio.clamp(max=1.0)  # raises
    return int(rejected.long().cumsum(0).eq(0).sum())
