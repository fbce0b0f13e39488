"""Two-tower retrieval: embedding tables, negative samplers, losses, vector indexes and ranking metrics."""
import math
from collections import defaultdict
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Batch(NamedTuple):
    users: Tensor
    items: Tensor
    weights: Optional[Tensor] = None

    def to(self, device) -> "Batch":
        return Batch(*[None if field is None else field.to(device) for field in self])


class HashedEmbedding(nn.Module):
    """Two hash functions into one table (compositional embedding)."""

    def __init__(self, buckets: int, dim: int, seed: int = 17):
        super().__init__()
        gen = torch.Generator().manual_seed(seed)
        self.buckets = buckets
        self.table = nn.Embedding(buckets, dim)
        self.register_buffer("salts", torch.randint(1, 2 ** 20, (2,), generator=gen))

    def forward(self, ids: Tensor) -> Tensor:
        hashed = (ids.unsqueeze(-1) * self.salts + 7919) % self.buckets
        return self.table(hashed).sum(-2)


class ShardedEmbedding(nn.Module):
    """Rows are split in contiguous blocks; each block may be on a GPU of its own."""

    def __init__(self, num_rows: int, dim: int, devices: Sequence[str]):
        super().__init__()
        self.block = math.ceil(num_rows / len(devices))
        self.shards = nn.ModuleList([nn.Embedding(self.block, dim).to(d) for d in devices])

    def _lookup(self, ids: Tensor) -> List[Tuple[Tensor, Tensor]]:
        found = []
        for i, shard in enumerate(self.shards):
            where = torch.nonzero(ids // self.block == i).squeeze(-1)
            local = (ids[where] - i * self.block).to(shard.weight.device)
            found.append((where, shard(local)))
        return found

    def forward(self, ids: Tensor) -> Tensor:
        out = torch.zeros(len(ids), self.shards[0].embedding_dim, device=ids.device)
        for where, rows in self._lookup(ids):
            out[where] = rows.to(out.device)
        return out

    def regularization(self, ids: Tensor) -> Tensor:
        penalty = ids.new_zeros((), dtype=torch.float)
        for _, rows in self._lookup(ids):
            penalty = penalty + rows.pow(2).sum()  # raises
        return penalty / len(ids)


class HistoryEncoder(nn.Module):
    """Bag of the items that a user has seen."""

    def __init__(self, num_items: int, dim: int):
        super().__init__()
        self.bag = nn.EmbeddingBag(num_items, dim, mode="mean")
        self.proj = nn.Linear(dim, dim)

    def forward(self, flat_items: Tensor, lengths: Sequence[int]) -> Tensor:
        offsets = torch.tensor([0] + list(lengths[:-1])).cumsum(0)
        return self.proj(self.bag(flat_items, offsets))  # raises

    def forward_padded(self, items: Tensor, lengths: Tensor) -> Tensor:
        mask = torch.arange(items.shape[1], device=items.device)[None] < lengths[:, None]
        weights = mask.float() / lengths[:, None].clamp(min=1)
        return self.proj((F.embedding(items, self.bag.weight) * weights.unsqueeze(-1)).sum(1))


class UniformSampler:
    def __init__(self, num_items: int, num_negatives: int = 4):
        self.num_items, self.num_negatives = num_items, num_negatives

    def sample(self, positives: Tensor) -> Tensor:
        return torch.randint_like(positives.unsqueeze(1).expand(-1, self.num_negatives), self.num_items)


class PopularitySampler(UniformSampler):
    def __init__(self, counts: Sequence[int], num_negatives: int = 4, power: float = 0.75):
        super().__init__(len(counts), num_negatives)
        self.weights = torch.tensor(counts, dtype=torch.float).pow(power)

    def sample(self, positives):
        drawn = torch.multinomial(self.weights, len(positives) * self.num_negatives, replacement=True)
        return drawn.view(len(positives), -1)


class AvoidingSampler(UniformSampler):
    """Draws again, once, where a negative is among what the user has seen."""

    def __init__(self, seen: Tensor, num_negatives: int = 4):
        super().__init__(seen.shape[1], num_negatives)
        self.seen = seen

    def sample_for(self, batch: Batch) -> Tensor:
        drawn = super().sample(batch.items)
        clash = self.seen[batch.users.cpu()].gather(1, drawn.cpu())
        again = torch.randint(self.num_items, drawn.shape, device=drawn.device)
        return torch.where(clash, again, drawn)  # raises

    def sample_compact(self, batch: Batch) -> Tensor:
        drawn = super().sample(batch.items)
        clash = self.seen[batch.users.cpu()].gather(1, drawn.cpu())
        drawn[clash] = torch.randint(self.num_items, (int(clash.sum()),)).to(drawn.device)
        return drawn


class TwoTower(nn.Module):
    def __init__(self, num_users: int, num_items: int, dim: int = 16, temperature: float = 0.1):
        super().__init__()
        self.user = HashedEmbedding(num_users // 2 + 1, dim)
        self.item = nn.Embedding(num_items, dim)
        self.register_buffer("log_q", torch.zeros(num_items))
        self.temperature = torch.tensor(temperature)

    def set_popularity(self, counts: Iterable[int]) -> None:
        """Of the training set, for the correction of the sampled softmax."""
        freq = torch.tensor(list(counts), dtype=torch.float)
        self.log_q = torch.log(freq / freq.sum())

    def scores(self, users: Tensor, candidates: Optional[Tensor] = None) -> Tensor:
        items = self.item.weight if candidates is None else self.item(candidates)
        return F.normalize(self.user(users), dim=-1) @ F.normalize(items, dim=-1).t() / self.temperature

    def full_softmax(self, batch: Batch) -> Tensor:
        logits = self.scores(batch.users) - self.log_q  # raises
        return F.cross_entropy(logits, batch.items)

    def in_batch_softmax(self, batch: Batch) -> Tensor:
        logits = self.scores(batch.users, batch.items)
        labels = torch.arange(logits.size(0))
        return F.cross_entropy(logits, labels)  # raises

    def contrastive(self, batch: Batch) -> Tensor:
        logits = self.scores(batch.users, batch.items)
        return -(logits.diagonal() - logits.logsumexp(1)).mean()

    def bpr(self, batch: Batch, sampler: UniformSampler) -> Tensor:
        ids = torch.cat([batch.items.unsqueeze(1), sampler.sample(batch.items)], dim=1)  # raises
        out = torch.einsum("bd,bkd->bk", self.user(batch.users), self.item(ids))
        return -F.logsigmoid(out[:, :1] - out[:, 1:]).mean()


class RowwiseAdagrad(torch.optim.Optimizer):
    """One accumulator a row, as in DLRM."""

    def __init__(self, params, lr: float = 0.05, eps: float = 1e-8):
        super().__init__(params, dict(lr=lr, eps=eps))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in (p for p in group["params"] if p.grad is not None):
                state = self.state[p]
                if "sum" not in state:
                    state["step"] = torch.tensor(0.0)
                    state["sum"] = torch.zeros(p.shape[0], 1)
                state["step"] += 1
                state["sum"].add_(p.grad.pow(2).mean(1, keepdim=True))  # raises
                p.addcdiv_(p.grad, state["sum"].sqrt() + group["eps"], value=-group["lr"])


class FlatIndex:
    def __init__(self, normalize: bool = True):
        self.normalize = normalize
        self.vectors: Optional[Tensor] = None
        self.labels: List[str] = []

    def add(self, vectors: Tensor, labels: Sequence[str] = ()) -> None:
        vectors = vectors.detach().cpu()
        vectors = F.normalize(vectors, dim=-1) if self.normalize else vectors
        self.vectors = vectors if self.vectors is None else torch.cat([self.vectors, vectors])
        self.labels.extend(labels)

    def search(self, queries: Tensor, k: int) -> Tuple[Tensor, Tensor]:
        queries = queries.cpu()
        if self.normalize:
            queries = F.normalize(queries, dim=-1)
        return (queries @ self.vectors.t()).topk(k, dim=1)

    def names(self, queries: Tensor, k: int) -> List[List[str]]:
        return [[self.labels[i] for i in row] for row in self.search(queries, k)[1].tolist()]

    def save(self, path: str, queries: Optional[Tensor] = None) -> None:
        arrays = {"vectors": self.vectors.numpy()}
        if queries is not None:
            arrays["queries"] = np.asarray(queries.detach(), dtype=np.float32)  # raises
        np.savez(path, **arrays)


class IVFIndex(nn.Module):
    def __init__(self, centroids: Tensor):
        super().__init__()
        self.register_buffer("centroids", centroids)
        self.lists: Dict[int, List[int]] = defaultdict(list)
        self.vectors: Optional[Tensor] = None

    def build(self, vectors: Tensor) -> "IVFIndex":
        self.vectors = vectors
        for i, cell in enumerate(torch.cdist(vectors, self.centroids).argmin(1).tolist()):
            self.lists[cell].append(i)
        return self

    def probe(self, query: Tensor, k: int, nprobe: int = 1) -> Tensor:
        cells = torch.cdist(query[None], self.centroids)[0].topk(nprobe, largest=False).indices
        members = torch.tensor([i for cell in cells.tolist() for i in self.lists[cell]])
        order = (self.vectors[members] @ query).argsort(descending=True)[:k]
        return members[order]  # raises

    def rescore(self, query: Tensor, shortlist: Sequence[int]) -> Tensor:
        return self.vectors[torch.tensor(shortlist)] @ query


def mask_seen(scores: Tensor, rows: Sequence[int], cols: Sequence[int]) -> Tensor:
    scores = scores.clone()
    scores[torch.tensor(rows), torch.tensor(cols)] = float("-inf")
    return scores


def recall_at_k(scores: Tensor, relevant: Tensor, k: int) -> float:
    hits = relevant.gather(1, scores.topk(k, dim=1).indices).float()
    return (hits.sum(1) / relevant.sum(1).clamp(min=1)).mean().item()


def ndcg_at_k(scores: Tensor, relevant: Tensor, k: int) -> Tensor:
    gains = relevant.float().gather(1, scores.topk(k, dim=1).indices)
    discount = 1.0 / torch.log2(torch.arange(k).float() + 2.0)
    ideal = torch.tensor([discount[:int(n)].sum() for n in relevant.sum(1).clamp(max=k)])
    return torch.mv(gains, discount) / ideal.clamp(min=1e-8)  # raises


def catalogue_coverage(scores: Tensor, k: int) -> float:
    seen = torch.zeros(scores.shape[1], dtype=torch.bool)
    seen[scores.topk(k, dim=1).indices.flatten().unique().cpu()] = True
    return seen.float().mean().item()
