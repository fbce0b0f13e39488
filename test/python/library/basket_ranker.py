"""Recommenders: baskets and sessions, sampled losses, rankings, and what loaders need."""

from collections import Counter, UserDict
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import LongTensor, Tensor, nn
from torch.utils.data import Dataset, IterableDataset, Sampler

PAD = 0
DISCOUNT = 1.0 / torch.arange(2, 102).float().log2()


@dataclass
class Batch:
    user: Tensor
    items: Tensor
    lengths: Tensor
    target: Optional[Tensor] = None

    def to(self, device) -> "Batch":
        moved = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **{k: v.to(device) if isinstance(v, Tensor) else v for k, v in moved.items()})

    @cached_property
    def mask(self) -> Tensor:
        return torch.arange(self.items.size(1)) < self.lengths.cpu()[:, None]


class Sessions(Dataset):
    """Histories in host memory; an item of it is one history cut at a random place."""

    def __init__(self, histories: Sequence[Sequence[int]], cut: bool = True):
        self.flat = torch.tensor([item for each in histories for item in each])
        self.ends = torch.tensor([len(each) for each in histories]).cumsum(0)
        self.cut = cut

    def __len__(self):
        return len(self.ends)

    def __getitem__(self, index: int) -> Dict[str, Any]:
        start = 0 if index == 0 else int(self.ends[index - 1])
        items = self.flat[start:self.ends[index]]
        stop = int(torch.randint(1, len(items), ())) if self.cut else len(items) - 1
        return {"user": index, "items": items[:stop], "target": items[stop]}

    def popularity(self, count: int) -> Tensor:
        return torch.bincount(self.flat, minlength=count).float()


def collate(rows: List[Dict[str, Any]]) -> Batch:
    lengths = torch.tensor([len(row["items"]) for row in rows])
    items = torch.full((len(rows), int(lengths.max())), PAD)
    for place, row in zip(items, rows):
        place[:len(row["items"])] = row["items"]
    return Batch(torch.tensor(list(map(itemgetter("user"), rows))), items, lengths, torch.stack([row["target"] for row in rows]))


class ByLength(Sampler):
    def __init__(self, lengths: Tensor, size: int, seed: int = 0):
        self.lengths, self.size = torch.as_tensor(lengths).cpu(), size
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self) -> Iterator[List[int]]:
        noise = torch.rand(len(self.lengths), generator=self.generator)
        order = torch.argsort(self.lengths + noise)
        groups = order.split(self.size)
        for index in torch.randperm(len(groups), generator=self.generator).tolist():
            yield groups[index].tolist()

    def __len__(self):
        return -(-len(self.lengths) // self.size)


def last_of(x: Tensor, lengths: Tensor) -> Tensor:
    return x[torch.arange(len(x)), lengths - 1]


def last_by_gather(x: Tensor, lengths: Tensor) -> Tensor:
    index = (lengths.cpu() - 1).view(-1, 1, 1).expand(-1, 1, x.size(-1))
    return x.gather(1, index).squeeze(1)  # raises


def pooled(x: Tensor, batch: Batch) -> Tensor:
    weight = batch.mask.float()
    return torch.einsum("nt,ntd->nd", weight, x)  # raises


def pooled_mean(x: Tensor, batch: Batch) -> Tensor:
    mask = batch.mask.to(x.device, non_blocking=True)
    return x.masked_fill(~mask[..., None], 0.0).sum(1) / batch.lengths.clamp(min=1)[:, None]


class Factors(nn.Module):
    """Users and items with biases."""

    def __init__(self, users: int, items: int, width: int = 4):
        super().__init__()
        self.user = nn.Embedding(users, width)
        self.item = nn.Embedding(items, width, padding_idx=PAD)
        self.bias = torch.zeros(items, requires_grad=True)
        self.mean = torch.tensor(3.5)

    def forward(self, user: LongTensor, item: LongTensor) -> Tensor:
        return (self.user(user) * self.item(item)).sum(-1) + self.mean

    def biased(self, user: LongTensor, item: LongTensor) -> Tensor:
        return self.forward(user, item) + F.embedding(item, self.bias[:, None])[:, 0]  # raises

    def all_items(self, user: LongTensor, block: int = 3) -> Tensor:
        scores = []
        for start in range(0, self.item.num_embeddings, block):
            rows = torch.arange(start, min(start + block, self.item.num_embeddings))
            scores.append(self.user(user) @ self.item.weight[rows].t())
        return torch.cat(scores, dim=1)

    def similar(self, item: int, count: int = 2) -> Tensor:
        query = self.item(torch.tensor([item]))  # raises
        return F.cosine_similarity(query, self.item.weight).topk(count).indices

    def similar_to(self, item: int, count: int = 2) -> List[int]:
        weight = self.item.weight.detach()
        return F.cosine_similarity(weight[torch.tensor([item])], weight).topk(count).indices.tolist()


class SessionModel(nn.Module):
    def __init__(self, items: int, width: int = 4, longest: int = 8, pool: Callable[[Tensor, Batch], Tensor] = pooled_mean):
        super().__init__()
        self.item = nn.Embedding(items, width, padding_idx=PAD)
        self.position = nn.Parameter(torch.zeros(longest, width))
        self.pool = pool
        self.seen_weight = nn.Parameter(torch.zeros(1))

    def encode(self, batch: Batch) -> Tensor:
        x = self.item(batch.items)
        place = torch.arange(x.size(1)).repeat(len(x), 1)
        return x + self.position[place]

    def forward(self, batch: Batch) -> Tensor:
        return self.pool(self.encode(batch), batch) @ self.item.weight.t()

    def recency(self, batch: Batch) -> Tensor:
        age = batch.lengths[:, None] - torch.arange(batch.items.size(1), device=batch.items.device)
        return torch.where(age > 0, 1 / age.clamp(min=1).float(), age.new_zeros(()).float())

    def with_seen(self, batch: Batch) -> Tensor:
        scores = self.forward(batch)
        seen = torch.zeros(scores.shape)
        seen.scatter_add_(1, batch.items, self.recency(batch))  # raises
        return scores + self.seen_weight * seen

    def without_seen(self, batch: Batch) -> Tensor:
        scores = self.forward(batch)
        seen = scores.new_zeros(scores.shape, dtype=torch.bool).scatter(1, batch.items, True)
        return scores.masked_fill(seen, float("-inf"))


class Negatives:
    """Items that are drawn by how often they are met."""

    def __init__(self, popularity: Tensor, power: float = 0.75):
        self.probability = popularity.clamp(min=1e-6) ** power
        self.probability /= self.probability.sum()

    def draw(self, shape: Sequence[int]) -> Tensor:
        return torch.multinomial(self.probability, int(np.prod(shape)), replacement=True).view(*shape)

    def alias(self, shape, device=None) -> Tensor:
        edges = self.probability.cumsum(0)
        return torch.searchsorted(edges, torch.rand(*shape)).clamp(max=len(edges) - 1).to(device)

    def corrected(self, scores: Tensor, items: Tensor) -> Tensor:
        return scores - self.probability.log().take(items)  # raises

    def corrected_on(self, scores, items):
        return scores - self.probability.to(scores)[items].log()


def pairwise_loss(positive: Tensor, negative: Tensor) -> Tensor:
    return -F.logsigmoid(positive - negative).mean()


def sampled_loss(scores: Tensor, target: Tensor, negatives: Negatives, count: int = 3) -> Tensor:
    other = negatives.alias((len(scores), count), scores.device)
    columns = torch.cat([target[:, None], other], dim=1)
    return F.cross_entropy(scores.gather(1, columns), torch.zeros_like(target))


def ranking_loss(scores: Tensor, target: Tensor, negatives: Negatives, count: int = 3) -> Tensor:
    positive = scores.gather(1, target[:, None])
    rows = torch.arange(len(scores))[:, None]
    negative = scores[rows, negatives.draw((len(scores), count))]
    return pairwise_loss(positive, negative)


def full_loss(scores: Tensor, target: Tensor, negatives: Negatives, count: int = 3) -> Tensor:
    label = torch.zeros(len(scores), dtype=torch.long)
    columns = torch.cat([target[:, None], negatives.alias((len(scores), count), target.device)], dim=1)
    return F.cross_entropy(scores.gather(1, columns), label)  # raises


def in_batch_loss(user: Tensor, item: Tensor, ids: Tensor, heat: float = 0.1) -> Tensor:
    logits = F.normalize(user, dim=-1) @ F.normalize(item, dim=-1).t() / heat
    same = ids[:, None] == ids[None]
    other = same & ~torch.eye(len(ids), dtype=torch.bool)  # raises
    return F.cross_entropy(logits.masked_fill(other, -1e4), torch.arange(len(ids), device=logits.device))


def diverse(scores: Tensor, vectors: Tensor, count: int, trade: float = 0.5) -> Tensor:
    """Picks items one by one; each should be unlike those before."""
    similarity = vectors @ vectors.t()
    penalty, picked = torch.zeros_like(scores), []
    for _ in range(count):
        value = trade * scores - (1 - trade) * penalty
        value[torch.tensor(picked, dtype=torch.long)] = float("-inf")
        picked.append(value.argmax().item())
        penalty = torch.maximum(penalty, similarity[picked[-1]])
    return torch.tensor(picked)


def diverse_scores(scores, vectors, count):
    picked = diverse(scores, vectors, count)
    gain = DISCOUNT[:count]
    return (scores[picked] * gain).sum()  # raises


class Ranks(UserDict):
    """Running means by name."""

    def add(self, **values: Tensor) -> None:
        for name, value in values.items():
            total, count = self.get(name, (torch.tensor(0.0), 0))
            self[name] = total + value.sum(), count + value.numel()

    def means(self) -> Dict[str, float]:
        return {name: (total / count).item() for name, (total, count) in self.items()}


class Judge:
    """Measures of rankings, on the host."""

    def __init__(self, cut: int = 3):
        self.cut = cut
        self.ranks = Ranks()
        self.shown: Counter = Counter()

    def place(self, scores: Tensor, target: Tensor) -> Tensor:
        return (scores > scores.gather(1, target[:, None])).sum(1)

    def update(self, scores: Tensor, target: Tensor) -> None:
        place = self.place(scores, target).cpu()
        hit = place < self.cut
        self.ranks.add(recall=hit.float(), gain=DISCOUNT[place.clamp(max=99)] * hit, reciprocal=1 / (place + 1.0))
        self.shown.update(scores.topk(self.cut).indices.flatten().tolist())

    def gains(self, scores: Tensor, target: Tensor) -> Tensor:
        place = self.place(scores, target)
        return DISCOUNT.index_select(0, place.clamp(max=99))  # raises

    def coverage(self, items: int) -> float:
        return len(self.shown) / items


class BySegment(Judge):
    def __init__(self, segments: Tensor, cut: int = 3):
        super().__init__(cut)
        self.segments = segments

    def update(self, scores, target, user=None):
        super().update(scores, target)
        if user is not None:
            hit = (self.place(scores, target) < self.cut).float()
            total = torch.bincount(self.segments[user.cpu()], weights=hit.cpu())
            self.ranks.add(**{f"segment_{i}": each for i, each in enumerate(total)})

    def worst(self, scores, target, user) -> Tensor:
        hit = (self.place(scores, target) < self.cut).float()
        groups = F.one_hot(self.segments[user.tolist()]).float()
        return torch.mm(hit[None], groups).min()  # raises


class Exported(NamedTuple):
    ids: np.ndarray
    vectors: np.ndarray


def exported(model: Factors, ids: Iterable[int]) -> Exported:
    index = np.fromiter(ids, dtype=np.int64)
    return Exported(index, model.item.weight.detach().cpu()[torch.from_numpy(index)].numpy())


def exported_half(model: Factors, ids: Iterable[int]) -> Exported:
    index = np.fromiter(ids, dtype=np.int64)
    vectors = F.normalize(model.item.weight.detach(), dim=1)
    return Exported(index, vectors.half().numpy()[index])  # raises


LOSSES = {"sampled": sampled_loss, "ranking": ranking_loss, "full": partial(full_loss, count=2)}
