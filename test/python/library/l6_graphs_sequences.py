"""Graph operators and sequence decoding."""
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


def maybe_num_nodes(edge_index: Tensor, num_nodes: Optional[int] = None) -> int:
    return num_nodes if num_nodes is not None else int(edge_index.max()) + 1


def scatter_sum(src: Tensor, index: Tensor, dim_size: int) -> Tensor:
    out = src.new_zeros((dim_size,) + src.shape[1:])
    return out.index_add_(0, index, src)


def degree(index: Tensor, num_nodes: Optional[int] = None, dtype: Optional[torch.dtype] = None) -> Tensor:
    n = maybe_num_nodes(index, num_nodes)
    out = torch.zeros((n,), dtype=dtype, device=index.device)
    one = torch.ones((index.size(0),), dtype=out.dtype, device=out.device)
    return out.scatter_add_(0, index, one)


def in_degree(edge_index: Tensor, num_nodes: int) -> Tensor:
    out = torch.zeros(num_nodes)
    return out.scatter_add_(0, edge_index[1], torch.ones(edge_index.size(1)))  # raises


def add_self_loops(edge_index: Tensor, num_nodes: Optional[int] = None) -> Tensor:
    n = maybe_num_nodes(edge_index, num_nodes)
    loop = torch.arange(0, n, dtype=torch.long)
    loop = loop.unsqueeze(0).repeat(2, 1)
    return torch.cat([edge_index, loop], dim=1)  # raises


def add_remaining_self_loops(edge_index: Tensor, edge_weight: Tensor, num_nodes: Optional[int] = None):
    n = maybe_num_nodes(edge_index, num_nodes)
    mask = edge_index[0] != edge_index[1]
    loop = torch.arange(n, device=edge_index.device)
    loop_weight = edge_weight.new_full((n,), 1.0)
    loop_weight[edge_index[0][~mask]] = edge_weight[~mask]
    return torch.cat([edge_index[:, mask], torch.stack([loop, loop])], 1), torch.cat([edge_weight[mask], loop_weight])


def negative_sampling(edge_index: Tensor, num_nodes: int, num_neg: Optional[int] = None) -> Tensor:
    num_neg = num_neg or edge_index.size(1)
    idx = edge_index[0] * num_nodes + edge_index[1]
    perm = torch.randint(num_nodes**2, (num_neg,))
    mask = torch.isin(perm, idx.cpu())
    perm = perm[~mask].to(edge_index.device)
    return torch.stack([torch.div(perm, num_nodes, rounding_mode="floor"), perm % num_nodes])


def structured_negatives(edge_index: Tensor, num_nodes: int) -> Tensor:
    i, j = edge_index
    rand = torch.randint(num_nodes, (i.size(0),), dtype=torch.long)
    hit = torch.isin(i * num_nodes + rand, i * num_nodes + j)  # raises
    rand[hit] = torch.randint(num_nodes, (int(hit.sum()),))
    return torch.stack([i, rand])


def to_dense_batch(x: Tensor, batch: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    if batch is None:
        batch = torch.zeros(x.size(0), dtype=torch.long, device=x.device)
    n = int(batch.max()) + 1
    count = degree(batch, n, dtype=torch.long)
    start = torch.cat([count.new_zeros(1), count.cumsum(0)])
    width = int(count.max())
    idx = torch.arange(x.size(0), device=x.device) - start[batch] + batch * width
    out = x.new_zeros(n * width, x.size(1))
    out[idx] = x
    mask = torch.zeros(n * width, dtype=torch.bool)
    mask[idx.cpu()] = True
    return out.view(n, width, -1), mask.view(n, width).to(x.device)


def global_mean_pool(x: Tensor, batch: Optional[Tensor] = None) -> Tensor:
    if batch is None:
        batch = torch.zeros(x.size(0)).long()
    n = int(batch.max()) + 1
    total = x.new_zeros(n, x.size(1)).index_add_(0, batch, x)  # raises
    return total / degree(batch, n).clamp(min=1)[:, None]


class GCNConv(nn.Module):
    def __init__(self, cin, cout, cached=False):
        super().__init__()
        self.lin = nn.Linear(cin, cout, bias=False)
        self.bias = nn.Parameter(torch.zeros(cout))
        self.cached = cached
        self._cache: Optional[Tuple[Tensor, Tensor]] = None

    def norm(self, edge_index, n, dtype):
        row, col = edge_index
        deg = degree(col, n, dtype=dtype)
        inv = deg.pow(-0.5).masked_fill(deg == 0, 0.0)
        return inv[row] * inv[col]

    def forward(self, x, edge_index):
        if self._cache is None or not self.cached:
            w = torch.ones(edge_index.size(1), device=edge_index.device)
            edge_index, w = add_remaining_self_loops(edge_index, w, x.size(0))
            w = self.norm(edge_index, x.size(0), x.dtype)
            self._cache = (edge_index, w)
        edge_index, w = self._cache
        h = self.lin(x)
        return scatter_sum(h[edge_index[0]] * w[:, None], edge_index[1], x.size(0)) + self.bias


class RGCNConv(nn.Module):
    def __init__(self, cin, cout, relations):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(relations, cin, cout))
        self.cout = cout

    def forward(self, x, edge_index, edge_type):
        out = torch.zeros(x.size(0), self.cout)
        for r in range(self.weight.size(0)):
            row, col = edge_index[:, edge_type == r]
            h = scatter_sum(x[row], col, x.size(0))
            out += h @ self.weight[r]  # raises
        return out


class TimeEncoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.lin = nn.Linear(1, dim)

    @property
    def device(self):
        return self.lin.weight.device

    def forward(self, t: Optional[Tensor] = None, n: int = 1):
        if t is None:
            t = torch.zeros(n, device=self.device)
        return self.lin(t.view(-1, 1)).cos()


class Memory(nn.Module):
    def __init__(self, nodes: int, dim: int):
        super().__init__()
        self.register_buffer("memory", torch.zeros(nodes, dim))
        self.register_buffer("last_update", torch.zeros(nodes, dtype=torch.long))
        self.register_buffer("_assoc", torch.empty(nodes, dtype=torch.long))
        self.pending: Dict[int, Tensor] = {}
        self.gru = nn.GRUCell(dim, dim)

    def compact(self, n_id: Tensor) -> Tensor:
        self._assoc[n_id] = torch.arange(n_id.size(0), device=n_id.device)
        return self._assoc[n_id]

    def store(self, n_id: Tensor, msg: Tensor):
        for i, row in zip(n_id.tolist(), msg):
            self.pending[i] = row

    def forward(self, n_id: Tensor) -> Tensor:
        empty = torch.zeros(self.memory.size(1))
        msgs = torch.stack([self.pending.get(i, empty) for i in n_id.tolist()])  # raises
        return self.gru(msgs, self.memory[n_id])


class CRF(nn.Module):
    def __init__(self, tags: int):
        super().__init__()
        self.start = nn.Parameter(torch.zeros(tags))
        self.trans = nn.Parameter(torch.randn(tags, tags))

    def log_partition(self, emissions: Tensor, mask: Tensor) -> Tensor:
        score = self.start + emissions[0]
        for i in range(1, emissions.size(0)):
            nxt = torch.logsumexp(score.unsqueeze(2) + self.trans + emissions[i].unsqueeze(1), dim=1)
            score = torch.where(mask[i].unsqueeze(1), nxt, score)
        return torch.logsumexp(score, dim=1)

    def viterbi(self, emissions: Tensor) -> List[int]:
        score, history = self.start + emissions[0], []
        for i in range(1, emissions.size(0)):
            best, idx = (score.unsqueeze(1) + self.trans + emissions[i].unsqueeze(0)).max(0)
            history.append(idx)
            score = best
        path = [score.argmax().item()]
        for idx in reversed(history):
            path.append(idx[path[-1]].item())
        return path[::-1]

    def numerator(self, emissions: Tensor, tags: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        steps, batch = tags.shape
        if mask is None:
            mask = torch.ones(steps, batch)
        rows = torch.arange(batch)
        score = self.start[tags[0]] + emissions[0, rows, tags[0]]
        for i in range(1, steps):
            step = self.trans[tags[i - 1], tags[i]] + emissions[i, rows, tags[i]]
            score = score + step * mask[i]  # raises
        return score


@dataclass
class Hypotheses:
    beams: int
    scores: List[Tensor] = field(default_factory=list)
    tokens: List[Tensor] = field(default_factory=list)

    def add(self, tokens: Tensor, score: Tensor):
        self.tokens.append(tokens.clone())
        self.scores.append(score / len(tokens))

    def best(self) -> Tensor:
        return self.tokens[int(torch.stack(self.scores).argmax())]


def ngram_blocking(tokens: Tensor, lprobs: Tensor, n: int = 2) -> Tensor:
    for b in range(tokens.size(0)):
        seen = {tuple(tokens[b, i : i + n].tolist()) for i in range(tokens.size(1) - n + 1)}
        prefix = tuple(tokens[b, -(n - 1) :].tolist())
        banned = [g[-1] for g in seen if g[:-1] == prefix]
        lprobs[b, torch.tensor(banned, dtype=torch.long)] = float("-inf")
    return lprobs


def finalize_beams(tokens: Tensor, scores: Tensor, eos_bbsz_idx: Tensor, beam: int) -> Tuple[Tensor, Tensor]:
    offsets = (torch.arange(0, tokens.size(0) // beam) * beam).unsqueeze(1).type_as(tokens)
    clone = tokens.index_select(0, eos_bbsz_idx)
    return clone, scores.view(-1, beam) + offsets


def select_beams(scores: Tensor, beam: int, vocab: int) -> Tuple[Tensor, Tensor]:
    top, idx = scores.view(scores.size(0), -1).topk(beam)
    base = torch.arange(scores.size(0)).view(-1, 1) * beam
    return top, (torch.div(idx, vocab, rounding_mode="floor") + base).view(-1)  # raises


def length_penalty(scores: Tensor, lengths: List[int], alpha: float = 0.6) -> Tensor:
    return scores / torch.tensor([((5 + n) / 6) ** alpha for n in lengths])  # raises


def ctc_greedy(logits: Tensor, lengths: Tensor, blank: int = 0) -> List[List[int]]:
    best = logits.argmax(-1).cpu()
    out = []
    for row, n in zip(best, lengths.tolist()):
        row = torch.unique_consecutive(row[:n])
        out.append([t for t in row.tolist() if t != blank])
    return out


def ctc_loss_from_lists(logits: Tensor, targets: List[List[int]]) -> Tensor:
    log_probs = logits.log_softmax(-1).transpose(0, 1)
    flat = torch.tensor([t for seq in targets for t in seq], dtype=torch.long)
    target_lengths = torch.tensor([len(s) for s in targets])
    input_lengths = torch.full((logits.size(0),), logits.size(1), dtype=torch.long)
    return F.ctc_loss(log_probs, flat, input_lengths, target_lengths)


def pack_and_run(rnn: nn.LSTM, x: Tensor, lengths: Tensor) -> Tensor:
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
    out, _ = rnn(packed)
    out, lens = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
    last = (lens - 1).view(-1, 1, 1).expand(-1, 1, out.size(2))
    return out.gather(1, last).squeeze(1)  # raises
