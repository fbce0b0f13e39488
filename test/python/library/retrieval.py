"""Retrieval, recommendation and metric learning: miners, losses, banks, samplers, indexes and ranking metrics."""
import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import combinations
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class RecommenderConfig:
    num_users: int = 6
    num_items: int = 9
    dim: int = 8
    max_length: int = 10
    layers: int = 2
    edges: List[Tuple[int, int]] = field(default_factory=lambda: [(0, 1), (1, 3), (2, 5), (4, 8), (5, 0)])


class BaseDistance:
    inverted = False

    def __call__(self, queries, references=None):
        references = queries if references is None else references
        return self.matrix(F.normalize(queries, dim=-1), F.normalize(references, dim=-1))

    def matrix(self, queries, references):
        raise NotImplementedError

    def margin(self, first, second):
        return second - first if self.inverted else first - second


class CosineSimilarity(BaseDistance):
    inverted = True

    def matrix(self, queries, references):
        return queries @ references.t()


class EuclideanDistance(BaseDistance):
    def matrix(self, queries, references):
        return torch.cdist(queries, references)


def all_pairs(labels):
    same = labels[:, None] == labels[None]
    different = ~same
    same.fill_diagonal_(False)
    return (*torch.where(same), *torch.where(different))


def all_triplets(labels):
    a1, p, a2, n = all_pairs(labels)
    first, second = torch.where(a1[:, None] == a2[None])
    return a1[first], p[first], n[second]


class Miner:
    def __init__(self, distance: Optional[BaseDistance] = None):
        self.distance = distance or EuclideanDistance()

    def __call__(self, embeddings, labels):
        with torch.no_grad():
            return self.mine(embeddings, labels)

    def mine(self, embeddings, labels):
        return all_triplets(labels)


class HardMiner(Miner):
    def mine(self, embeddings, labels):
        matrix, same = self.distance(embeddings), labels[:, None] == labels[None]
        positive = matrix.masked_fill(~same, -math.inf).argmax(1)
        negative = matrix.masked_fill(same, math.inf).argmin(1)
        return torch.arange(labels.shape[0]), positive, negative


class EasyMiner(Miner):
    def mine(self, embeddings, labels):
        a, p, n = super().mine(embeddings, labels)
        matrix = self.distance(embeddings)
        keep = self.distance.margin(matrix[a, p], matrix[a, n]) < 0
        return a[keep], p[keep], n[keep]


class CombinedMiner(Miner):
    def __init__(self, miners: Sequence[Miner]):
        super().__init__()
        self.miners = miners

    def mine(self, embeddings, labels):
        mined = [miner(embeddings, labels) for miner in self.miners]
        return tuple(torch.cat(part) for part in zip(*mined))  # raises


class MetricLoss(nn.Module):
    def __init__(self, distance: Optional[BaseDistance] = None):
        super().__init__()
        self.distance = distance or CosineSimilarity()
        self.register_buffer("empty", torch.zeros(()), persistent=False)

    def forward(self, embeddings, labels, mined=None):
        losses = self.compute(embeddings, labels, mined)
        return {"loss": self.reduce(losses), "size": losses.numel()}

    def reduce(self, losses):
        active = losses[losses > 0]
        return active.mean() if active.numel() else self.empty

    def compute(self, embeddings, labels, mined):
        raise NotImplementedError


class TripletLoss(MetricLoss):
    def __init__(self, margin=0.2, **kwargs):
        super().__init__(**kwargs)
        self.margin = torch.tensor(margin)

    def compute(self, embeddings, labels, mined):
        a, p, n = mined if mined is not None else all_triplets(labels)
        matrix = self.distance(embeddings)
        return F.relu(self.distance.margin(matrix[a, p], matrix[a, n]) + self.margin)


class SupervisedContrastive(MetricLoss):
    temperature = 0.1

    def own(self, size, device):
        return torch.eye(size, dtype=torch.bool, device=device)

    def compute(self, embeddings, labels, mined):
        logits = self.distance(embeddings) / self.temperature
        own = self.own(labels.shape[0], logits.device)
        positive = (labels[:, None] == labels[None]) & ~own
        log_prob = logits - logits.masked_fill(own, -math.inf).logsumexp(1, keepdim=True)
        return -(log_prob * positive).sum(1) / positive.sum(1).clamp(min=1)


class TwoViewContrastive(SupervisedContrastive):
    def own(self, size, device):
        half = size // 2
        return torch.eye(half).repeat(2, 2).bool()

    def compute(self, embeddings, labels, mined):
        logits = self.distance(embeddings) / self.temperature
        paired = self.own(labels.shape[0], logits.device)
        same = labels[:, None].eq(labels[None])
        return (logits.exp() * (same | paired)).sum(1).log() - logits.logsumexp(1)  # raises


class ArcFace(MetricLoss):
    def __init__(self, num_classes, dim, margin=0.3, scale=16.0):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(num_classes, dim))
        self.cos_m, self.sin_m, self.scale = math.cos(margin), math.sin(margin), scale

    def margins(self, cosine, labels):
        shifted = cosine * self.cos_m - (1 - cosine.pow(2)).clamp(min=1e-6).sqrt() * self.sin_m
        hot = torch.zeros(cosine.size())
        hot.scatter_(1, labels.view(-1, 1), 1.0)  # raises
        return hot * shifted + (1 - hot) * cosine

    def compute(self, embeddings, labels, mined):
        logits = self.margins(self.distance(embeddings, self.weight), labels)
        return F.cross_entropy(self.scale * logits, labels, reduction="none")


class CosFace(ArcFace):
    def margins(self, cosine, labels):
        rows, cosine = torch.arange(labels.numel()), cosine.clone()
        cosine[rows, labels] -= 1 - self.cos_m
        return cosine


class CenterLoss(MetricLoss):
    def __init__(self, num_classes, dim):
        super().__init__(EuclideanDistance())
        self.centers = nn.Parameter(torch.randn(num_classes, dim))
        self.classes = torch.arange(num_classes)

    def compute(self, embeddings, labels, mined):
        matrix = self.distance(embeddings, self.centers)
        own = labels[:, None].eq(self.classes[None].expand_as(matrix))  # raises
        return (matrix * own).clamp(1e-12, 1e12).sum(1)


class SoftTriple(MetricLoss):
    def __init__(self, num_classes, dim, per_class=2):
        super().__init__()
        self.fc = nn.Parameter(torch.randn(num_classes * per_class, dim))
        self.per_class = per_class
        block = torch.zeros(self.fc.shape[0], self.fc.shape[0], dtype=torch.bool)
        for index in range(num_classes):
            for first, second in combinations(range(index * per_class, (index + 1) * per_class), 2):
                block[first, second] = True
        self.block = block

    def compute(self, embeddings, labels, mined):
        similarity = self.distance(embeddings, self.fc).view(labels.shape[0], -1, self.per_class)
        logits = (similarity * similarity.softmax(-1)).sum(-1)
        spread = (2.0 + 1e-5 - 2 * self.distance(self.fc)[self.block]).sqrt().mean()
        return F.cross_entropy(logits, labels, reduction="none") + 0.1 * spread


class CrossBatchMemory(nn.Module):
    def __init__(self, loss: MetricLoss, dim, size=12):
        super().__init__()
        self.loss, self.size, self.filled, self.head = loss, size, 0, 0
        self.embeddings, self.labels = torch.zeros(size, dim), torch.zeros(size, dtype=torch.long)

    def enqueue(self, embeddings, labels):
        self.embeddings, self.labels = self.embeddings.to(embeddings.device), self.labels.to(labels.device)
        slots = (torch.arange(labels.shape[0]) + self.head) % self.size
        self.embeddings[slots], self.labels[slots] = embeddings.detach(), labels
        self.head = (self.head + labels.shape[0]) % self.size
        self.filled = min(self.size, self.filled + labels.shape[0])

    def forward(self, embeddings, labels):
        self.enqueue(embeddings, labels)
        memory = slice(0, self.filled)
        joined = torch.cat([embeddings, self.embeddings[memory]]), torch.cat([labels, self.labels[memory]])
        return self.loss(*joined)


class MomentumQueue(nn.Module):
    def __init__(self, dim, size=12, temperature=0.07):
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(math.log(1 / temperature)))
        self.register_buffer("queue", F.normalize(torch.randn(size, dim), dim=-1))
        self.register_buffer("pointer", torch.zeros(1, dtype=torch.long))

    def negatives(self, queries):
        return queries @ self.queue.clone().t()

    def targets(self, logits):
        return logits.new_zeros(logits.shape[0], dtype=torch.long)

    @torch.no_grad()
    def enqueue(self, keys):
        slots = (self.pointer + torch.arange(keys.shape[0], device=keys.device)) % self.queue.shape[0]
        self.queue[slots] = keys
        self.pointer.copy_((self.pointer + keys.shape[0]) % self.queue.shape[0])

    def forward(self, queries, keys):
        logits = torch.cat([(queries * keys).sum(-1, keepdim=True), self.negatives(queries)], dim=1) * self.log_scale.exp()
        loss = F.cross_entropy(logits, self.targets(logits))  # raises
        self.enqueue(keys.detach())
        return loss


class SoftLabelQueue(MomentumQueue):
    def targets(self, logits):
        positions = torch.zeros(logits.shape[0], dtype=torch.long)
        return F.one_hot(positions, logits.shape[1]).float() * 0.9 + 0.1 / logits.shape[1]


class InstanceBank(MomentumQueue):
    def __init__(self, dim, size=12, **kwargs):
        super().__init__(dim, size, **kwargs)
        self.view = self.queue.t()

    def negatives(self, queries):
        return torch.mm(queries, self.view)  # raises


class ClassBalancedSampler:
    def __init__(self, labels, per_class=2, batches=2):
        self.groups = self.group(labels)
        self.per_class, self.batches = per_class, batches

    def group(self, labels) -> Dict[int, np.ndarray]:
        groups = defaultdict(list)
        for index, label in enumerate(labels.tolist()):
            groups[label].append(index)
        return {label: np.array(rows) for label, rows in groups.items()}

    def __iter__(self) -> Iterator[List[int]]:
        for _ in range(self.batches):
            yield [int(i) for rows in self.groups.values() for i in np.random.choice(rows, self.per_class)]


class FastBalancedSampler(ClassBalancedSampler):
    def group(self, labels):
        values = np.asarray(labels)  # raises
        return {int(label): np.flatnonzero(values == label) for label in np.unique(values)}


class NegativeSampler:
    def __init__(self, counts: Sequence[int], power=0.75):
        self.weights = torch.tensor(counts, dtype=torch.float32) ** power

    def sample(self, positives):
        return torch.multinomial(self.weights, positives.numel(), replacement=True).view_as(positives)


class RejectingSampler(NegativeSampler):
    def sample(self, positives):
        weights = self.weights.to(positives.device).expand(positives.numel(), -1)
        return torch.multinomial(weights.scatter(1, positives.view(-1, 1), 0.0), 1).view_as(positives)


class Recommender(nn.Module):
    def __init__(self, config: RecommenderConfig, sampler: Optional[NegativeSampler] = None):
        super().__init__()
        self.config, self.sampler = config, sampler or RejectingSampler([1] * config.num_items)
        self.users = nn.Embedding(config.num_users, config.dim)
        self.items = nn.Embedding(config.num_items, config.dim)
        self.build()

    def build(self):
        pass

    def tables(self):
        return self.users.weight, self.items.weight

    def bpr(self, users, positives):
        negatives = self.sampler.sample(positives)
        user_table, item_table = self.tables()
        user = F.embedding(users, user_table)
        good, bad = (user * F.embedding(positives, item_table)).sum(-1), self.affinity(user, negatives, item_table)
        return -F.logsigmoid(good - bad).mean()

    @staticmethod
    def affinity(user, items, table):
        return (user * F.embedding(items, table)).sum(-1)  # raises

    def recommend(self, users, k=3, seen: Optional[List[List[int]]] = None):
        user_table, item_table = self.tables()
        scores = user_table[users] @ item_table.t()
        for row, items in enumerate(seen or []):
            scores[row, torch.tensor(items, dtype=torch.long)] = -math.inf
        return scores.topk(k).indices


class GraphRecommender(Recommender):
    def build(self):
        users, items = torch.tensor(self.config.edges).t()
        items = items + self.config.num_users
        self.edge_index = torch.stack([torch.cat([users, items]), torch.cat([items, users])])
        degree = torch.bincount(self.edge_index[0], minlength=self.config.num_users + self.config.num_items)
        self.register_buffer("norm", degree.clamp(min=1).float().rsqrt())

    def tables(self):
        hidden = torch.cat(super().tables())
        layers, (source, target) = [hidden], self.edge_index
        for _ in range(self.config.layers):
            messages = hidden[source] * (self.norm[source] * self.norm[target]).unsqueeze(1)
            hidden = torch.zeros_like(hidden).index_add(0, target, messages)  # raises
            layers.append(hidden)
        return torch.stack(layers).mean(0).split([self.config.num_users, self.config.num_items])


class SequentialRecommender(Recommender):
    def build(self):
        self.positions = nn.Embedding(self.config.max_length, self.config.dim)
        self.attention = nn.MultiheadAttention(self.config.dim, 2, batch_first=True)

    def position_ids(self, sequence):
        return torch.arange(sequence.shape[1]).expand_as(sequence)

    def encode(self, sequence):
        x = self.items(sequence)
        x = x + self.positions(self.position_ids(sequence))  # raises
        future = torch.ones(2 * sequence.shape[1:], dtype=torch.bool).triu(1).to(x.device)
        return self.attention(x, x, x, attn_mask=future)[0][:, -1]


class ReversedSequentialRecommender(SequentialRecommender):
    def position_ids(self, sequence):
        return torch.ones_like(sequence).flip(1).cumsum(1).flip(1) - 1


class FieldRecommender(nn.Module):
    def __init__(self, field_sizes: Sequence[int], dim=4):
        super().__init__()
        self.offsets = np.array((0, *np.cumsum(field_sizes)[:-1]), dtype=np.int64)
        self.embedding, self.linear = nn.Embedding(sum(field_sizes), dim), nn.EmbeddingBag(sum(field_sizes), 1, mode="sum")

    def forward(self, fields_):
        index = fields_ + fields_.new_tensor(self.offsets).unsqueeze(0)
        factors = self.embedding(index)
        return self.linear(index).squeeze(1) + 0.5 * (factors.sum(1) ** 2 - (factors ** 2).sum(1)).sum(1)


class SampledSoftmax(nn.Module):
    def __init__(self, corrected=True):
        super().__init__()
        self.counts, self.corrected = Counter(), corrected

    def correction(self, items):
        self.counts.update(items.tolist())
        total = sum(self.counts.values())
        return torch.tensor([math.log(self.counts[item] / total) for item in items.tolist()])

    def forward(self, users, items, item_ids):
        logits = users @ items.t()
        if self.corrected:
            logits = logits - self.correction(item_ids)  # raises
        return F.cross_entropy(logits, torch.arange(users.shape[0], device=logits.device))


class Whitening:
    def __init__(self, epsilon=1e-3):
        self.epsilon = epsilon

    def fit(self, vectors):
        self.mean = vectors.mean(0)
        centred = vectors - self.mean
        covariance = centred.t() @ centred / vectors.shape[0]
        covariance = covariance + self.epsilon * torch.eye(vectors.shape[1])  # raises
        self.factor = torch.linalg.cholesky(covariance)
        return self


class KMeans:
    def __init__(self, clusters, iterations=3):
        self.clusters, self.iterations = clusters, iterations

    def fit(self, vectors):
        self.centroids = vectors[torch.randperm(vectors.shape[0])[:self.clusters]]
        for _ in range(self.iterations):
            self.centroids = self.update(vectors, self.assign(vectors))
        return self

    def assign(self, vectors):
        return torch.cdist(vectors, self.centroids).argmin(1)

    def update(self, vectors, assigned):
        members = [vectors[assigned == index] for index in range(self.clusters)]
        return torch.stack([each.mean(0) if len(each) else self.centroids[i] for i, each in enumerate(members)])


class SphericalKMeans(KMeans):
    def update(self, vectors, assigned):
        sums = torch.zeros(self.clusters, vectors.shape[1])
        return F.normalize(sums.index_add_(0, assigned, vectors), dim=-1)  # raises


class ProductQuantizer:
    def __init__(self, parts=2, clusters=4, compact=False):
        self.parts, self.clusters, self.compact = parts, clusters, compact

    def fit(self, vectors):
        self.books = [KMeans(self.clusters).fit(part) for part in vectors.chunk(self.parts, dim=1)]
        codes = torch.stack([book.assign(p) for book, p in zip(self.books, vectors.chunk(self.parts, dim=1))])
        self.codes = torch.from_numpy(codes.cpu().numpy().astype(np.int16)).long() if self.compact else codes
        return self

    def search(self, query, k=2):
        chunks = query.view(1, -1).chunk(self.parts, dim=1)
        tables = torch.cat([torch.cdist(part, book.centroids) for part, book in zip(chunks, self.books)])
        return torch.gather(tables, 1, self.codes).sum(0).topk(k, largest=False).indices  # raises


class FlatIndex:
    def __init__(self, vectors):
        self.vectors = vectors.detach().cpu().numpy()

    def search(self, queries, k=2):
        scores = queries.detach().cpu().numpy() @ self.vectors.T
        order = np.argsort(-scores, axis=1)[:, :k]
        return torch.from_numpy(np.take_along_axis(scores, order, 1)).to(queries), torch.from_numpy(order)


class RankingMetric:
    def __init__(self, k=3):
        self.k, self.values = k, []

    def update(self, scores, relevance):
        hits = relevance.gather(1, scores.topk(self.k).indices)
        self.values.append(self.per_query(hits.float(), relevance.float()))

    def compute(self):
        return torch.cat(self.values).mean()

    def per_query(self, hits, relevance):
        return hits.sum(1) / relevance.sum(1).clamp(min=1)


class ReciprocalRank(RankingMetric):
    def per_query(self, hits, relevance):
        first = hits.argmax(1) + 1
        return torch.where(hits.any(1), 1.0 / first, torch.zeros_like(first, dtype=hits.dtype))


class NormalizedGain(RankingMetric):
    def discount(self, hits):
        return 1.0 / torch.log2(torch.arange(self.k, dtype=torch.float32) + 2.0)

    def per_query(self, hits, relevance):
        discount = self.discount(hits)
        ideal = relevance.topk(self.k).values
        return (hits * discount).sum(1) / (ideal * discount).sum(1).clamp(min=1e-6)  # raises
