"""Metric learning: distances, miners, pair and proxy losses, evaluation."""
import math
from dataclasses import dataclass
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class MetricConfig:
    dim: int = 8
    num_classes: int = 5
    margin: float = 0.2
    scale: float = 16.0
    centers_per_class: int = 2
    bins: int = 10
    seed: int = 0


class Triplets(NamedTuple):
    anchor: Tensor
    positive: Tensor
    negative: Tensor

    @property
    def empty(self) -> bool:
        return self.anchor.numel() == 0


class Distance(nn.Module):
    """Callable on rows of two matrices; `inverted` ones grow with similarity."""
    inverted = False

    def prepare(self, rows: Tensor) -> Tensor:
        return F.normalize(rows, dim=1)

    def forward(self, query: Tensor, other: Optional[Tensor] = None) -> Tensor:
        query = self.prepare(query)
        return self.matrix(query, query if other is None else self.prepare(other))

    def matrix(self, query, other):
        return torch.cdist(query, other)

    def margin(self, near, far):
        return far - near if self.inverted else near - far


class CosineSimilarity(Distance):
    inverted = True

    def matrix(self, query, other):
        return query @ other.t()


class MahalanobisDistance(Distance):
    """Metric from the differences of similar pairs (KISSME without the dissimilar part)."""

    def __init__(self, dim: int, shrinkage=0.1):
        super().__init__()
        self.shrinkage = shrinkage
        self.register_buffer("factor", torch.eye(dim))

    @torch.no_grad()
    def fit(self, left: Tensor, right: Tensor):
        cov = torch.cov((left - right).t())
        target = torch.diag(torch.full((cov.size(0),), cov.diagonal().mean().item()))
        shrunk = (1 - self.shrinkage) * cov + self.shrinkage * target  # raises
        self.factor = torch.linalg.cholesky(torch.linalg.inv(shrunk))
        return self

    @torch.no_grad()
    def fit_diagonal(self, left: Tensor, right: Tensor):
        spread = (left - right).cpu().double().var(0)
        self.factor.copy_(torch.diag(spread.rsqrt()))
        return self

    def prepare(self, rows):
        return rows @ self.factor


def pair_masks(labels: Tensor) -> Tuple[Tensor, Tensor]:
    same = labels.unsqueeze(1) == labels.unsqueeze(0)
    different = ~same
    return same.fill_diagonal_(False), different


class Miner:
    """Subclasses give rows of indices; they need no gradient."""

    def __init__(self, distance: Optional[Distance] = None):
        self.distance = distance or Distance()

    def mine(self, matrix: Tensor, labels: Tensor) -> Triplets:
        raise NotImplementedError

    @torch.no_grad()
    def __call__(self, embeddings, labels) -> Triplets:
        return self.mine(self.distance(embeddings), labels)


class AllTripletsMiner(Miner):
    def mine(self, matrix, labels):
        same, different = pair_masks(labels)
        return Triplets(*torch.where(same.unsqueeze(2) & different.unsqueeze(1)))


class HardMiner(Miner):
    def mine(self, matrix, labels):
        same, different = pair_masks(labels)
        positive = matrix.masked_fill(~same, -1.0).argmax(1)
        negative = matrix.masked_fill(~different, math.inf).argmin(1)
        return Triplets(torch.arange(len(labels)), positive, negative)


class SemiHardMiner(HardMiner):
    """Negatives that are farther than the positive, where there are any."""

    def mine(self, matrix, labels):
        hard = super().mine(matrix, labels)
        border = matrix.gather(1, hard.positive.unsqueeze(1))
        farther = pair_masks(labels)[1] & (matrix > border)
        negative = matrix.masked_fill(~farther, math.inf).argmin(1)
        return hard._replace(negative=torch.where(farther.any(1), negative, hard.negative))


class DistanceWeightedMiner(Miner):
    def __init__(self, dim, distance=None, seed=0):
        super().__init__(distance)
        self.dim, self.random = dim, np.random.RandomState(seed)

    def log_density(self, matrix):
        matrix = matrix.clamp(0.5, 1.9)
        return (2.0 - self.dim) * matrix.log() - 0.5 * (self.dim - 3.0) * (1.0 - 0.25 * matrix ** 2).log()

    def mine(self, matrix, labels):
        same, different = pair_masks(labels)
        weights = torch.where(different, -self.log_density(matrix), matrix.new_full((), -1e4)).softmax(1)
        rows = []
        for anchor, positive in same.nonzero().tolist():
            chance = weights[anchor].double()
            negative = self.random.choice(len(labels), p=chance / chance.sum())  # raises
            rows.append((anchor, positive, int(negative)))
        return Triplets(*torch.tensor(rows).t())


class RandomMiner(Miner):
    def __init__(self, seed=0):
        super().__init__()
        self.random = np.random.RandomState(seed)

    def mine(self, matrix, labels):
        classes, rows = labels.cpu().numpy(), []
        for anchor, label in enumerate(classes):
            inside = np.flatnonzero((classes == label) & (np.arange(len(classes)) != anchor))
            outside = np.flatnonzero(classes != label)
            if len(inside) and len(outside):
                rows.append((anchor, self.random.choice(inside), self.random.choice(outside)))
        return Triplets(*torch.as_tensor(np.array(rows).T))


class TripletLoss(nn.Module):
    def __init__(self, config: MetricConfig, miner: Optional[Miner] = None, smooth=False):
        super().__init__()
        self.config, self.smooth = config, smooth
        self.miner = miner or AllTripletsMiner()

    def violations(self, embeddings, triplets):
        matrix = self.miner.distance(embeddings)
        near = matrix[triplets.anchor, triplets.positive]
        far = matrix[triplets.anchor, triplets.negative]
        return self.miner.distance.margin(near, far)

    def forward(self, embeddings, labels):
        triplets = self.miner(embeddings, labels)
        if triplets.empty:
            return embeddings.sum() * 0
        violations = self.violations(embeddings, triplets)
        return F.softplus(violations).mean() if self.smooth else F.relu(violations + self.config.margin).mean()


class WeightedTripletLoss(TripletLoss):
    """Counts each triplet by the rarity of the class of its anchor."""

    def __init__(self, config, counts: Sequence[int], miner=None):
        super().__init__(config, miner)
        self.rarity = sum(counts) / torch.tensor(counts, dtype=torch.float)

    def forward(self, embeddings, labels):
        triplets = self.miner(embeddings, labels)
        hinge = F.relu(self.violations(embeddings, triplets) + self.config.margin)
        weight = self.rarity[labels[triplets.anchor].cpu()]
        return torch.dot(hinge, weight) / hinge.numel()  # raises


class HistogramLoss(nn.Module):
    def __init__(self, config: MetricConfig):
        super().__init__()
        self.config = config
        self.nodes = torch.linspace(-1.0, 1.0, config.bins + 1)

    def histogram(self, similarity):
        closeness = self.config.bins / 2 * (similarity.unsqueeze(1) - self.nodes).abs()  # raises
        return F.relu(1 - closeness).mean(0)

    def forward(self, embeddings, labels):
        same, different = pair_masks(labels)
        similarity = CosineSimilarity()(embeddings)
        return (self.histogram(similarity[different]) * self.histogram(similarity[same]).cumsum(0)).sum()


class NPairLoss(nn.Module):
    """One pair of each class."""

    def forward(self, anchors, positives):
        logits = anchors @ positives.t()
        return F.cross_entropy(logits, torch.arange(anchors.size(0)))  # raises


class ProxyLoss(nn.Module):
    """Base of the losses with learned class vectors."""

    def __init__(self, config: MetricConfig, rows: Optional[int] = None):
        super().__init__()
        self.config = config
        self.proxies = nn.Parameter(torch.randn(rows or config.num_classes, config.dim))

    def cosines(self, embeddings):
        return F.linear(F.normalize(embeddings), F.normalize(self.proxies))

    def logits(self, embeddings, labels):
        return self.config.scale * self.cosines(embeddings)

    def forward(self, embeddings, labels):
        return F.cross_entropy(self.logits(embeddings, labels), labels)


class ProxyAnchorLoss(ProxyLoss):
    def forward(self, embeddings, labels):
        cosines = self.cosines(embeddings)
        positive = F.one_hot(labels, self.config.num_classes).bool()
        pull = torch.where(positive, -self.config.scale * (cosines - self.config.margin), -math.inf * torch.ones_like(cosines))
        push = (self.config.scale * (cosines + self.config.margin)).masked_fill(positive, -math.inf)
        present = positive.any(0)
        return F.softplus(pull.logsumexp(0)[present]).mean() + F.softplus(push.logsumexp(0)).mean()


class ArcFaceLoss(ProxyLoss):
    def logits(self, embeddings, labels):
        cosines = self.cosines(embeddings).clamp(-1 + 1e-6, 1 - 1e-6)
        rows = torch.arange(len(labels))
        shifted = torch.cos(cosines[rows, labels].acos() + self.config.margin)
        return self.config.scale * cosines.index_put((rows.to(labels.device), labels), shifted)


class AdaCosLoss(ProxyLoss):
    """The scale follows the median angle."""

    def __init__(self, config):
        super().__init__(config)
        self.scale = torch.tensor(math.sqrt(2) * math.log(config.num_classes - 1))

    def logits(self, embeddings, labels):
        cosines = self.cosines(embeddings)
        with torch.no_grad():
            own = cosines.gather(1, labels.unsqueeze(1)).acos().median()
            self.scale = (math.log(self.config.num_classes) / own.clamp(max=math.pi / 4).cos()).cpu()
        return self.scale * cosines


class ClassMarginLoss(ProxyLoss):
    """Margins that depend on the number of samples (LDAM)."""

    def __init__(self, config, counts: Sequence[int]):
        super().__init__(config)
        margins = torch.tensor(counts, dtype=torch.float).pow(-0.25)
        self.margins = [config.margin * margins / margins.max()]

    def logits(self, embeddings, labels):
        one_hot = F.one_hot(labels, self.config.num_classes).float()
        return self.config.scale * torch.addcmul(self.cosines(embeddings), one_hot, self.margins[0], value=-1)  # raises


class SoftTripleLoss(ProxyLoss):
    def __init__(self, config, regularize=0.1, merge=False):
        rows = config.num_classes * config.centers_per_class
        super().__init__(config, rows)
        self.regularize, self.merge = regularize, merge
        blocks = torch.block_diag(*[torch.ones(config.centers_per_class, config.centers_per_class)] * config.num_classes)
        self.siblings = blocks.triu(diagonal=1).bool()

    def logits(self, embeddings, labels):
        grouped = self.cosines(embeddings).view(len(embeddings), self.config.num_classes, -1)
        relaxed = (grouped * (grouped / 0.1).softmax(2)).sum(2)
        return self.config.scale * (relaxed - self.config.margin * F.one_hot(labels, self.config.num_classes))

    def forward(self, embeddings, labels):
        loss = super().forward(embeddings, labels)
        centers = self.cosines(self.proxies)
        if self.merge:
            near = torch.masked_select(centers, self.siblings)  # raises
        else:
            near = centers[self.siblings]
        return loss + self.regularize * (2 + 1e-5 - 2 * near).sqrt().mean()


class CenterLoss(nn.Module):
    """Centers are moved by hand, not by the optimizer."""

    def __init__(self, config: MetricConfig, rate=0.5):
        super().__init__()
        self.rate = rate
        self.centers: Dict[int, Tensor] = {}
        self.empty = torch.zeros(config.dim)

    def forward(self, embeddings, labels):
        classes = labels.tolist()
        for label in set(classes):
            mean = embeddings.detach()[labels == label].mean(0)
            self.centers[label] = mean if label not in self.centers else torch.lerp(self.centers[label], mean, self.rate)
        return (embeddings - torch.stack([self.centers[label] for label in classes])).square().sum(1).mean()

    def table(self, num_classes: int) -> Tensor:
        return torch.vstack([self.centers.get(label, self.empty) for label in range(num_classes)])  # raises


class ShardedProxies(nn.Module):
    """Class vectors cut in shards."""

    def __init__(self, config: MetricConfig, devices: Sequence[str], merged=True):
        super().__init__()
        self.config, self.merged = config, merged
        sizes = [len(part) for part in np.array_split(np.arange(config.num_classes), len(devices))]
        self.shards = nn.ParameterList(
            nn.Parameter(torch.randn(size, config.dim, device=device)) for size, device in zip(sizes, devices))

    def partial(self, embeddings) -> List[Tensor]:
        return [F.normalize(embeddings.to(shard.device)) @ F.normalize(shard).t() for shard in self.shards]

    def forward(self, embeddings, labels):
        parts = [self.config.scale * part for part in self.partial(embeddings)]
        if self.merged:
            return F.cross_entropy(torch.cat([part.to(embeddings.device) for part in parts], 1), labels)
        norm = torch.stack([part.logsumexp(1).to(embeddings.device) for part in parts]).logsumexp(0)
        first, loss = 0, norm.sum()
        for part in parts:
            local = (labels - first).clamp(0, part.size(1) - 1)
            inside = (labels >= first) & (labels < first + part.size(1))
            own = part.gather(1, local.unsqueeze(1)).squeeze(1)  # raises
            loss, first = loss - (own * inside).sum(), first + part.size(1)
        return loss / len(labels)


class Whitening:
    """PCA in numpy, applied to new embeddings."""

    def __init__(self, dim: int):
        self.dim = dim

    def fit(self, embeddings: Tensor) -> "Whitening":
        rows = embeddings.detach().cpu().numpy()
        value, vector = np.linalg.eigh(np.cov(rows, rowvar=False))
        self.mean = rows.mean(0)
        self.projection = torch.from_numpy(vector[:, -self.dim:] / np.sqrt(value[-self.dim:] + 1e-6)).float()
        return self

    def __call__(self, embeddings):
        centered = embeddings - embeddings.new_tensor(self.mean)
        return F.normalize(centered.mm(self.projection), dim=1)  # raises


class RetrievalEvaluator:
    def __init__(self, model: nn.Module, ks: Iterable[int] = (1, 2)):
        self.model, self.ks = model, tuple(ks)

    @torch.no_grad()
    def embed(self, batches) -> Tuple[Tensor, Tensor]:
        device = next(self.model.parameters()).device
        pairs = [(F.normalize(self.model(inputs.to(device))).cpu(), labels.cpu()) for inputs, labels in batches]
        features, labels = zip(*pairs)
        return torch.cat(features), torch.cat(labels)

    def hits(self, similarity, query_labels, labels):
        order = similarity.topk(max(self.ks), dim=1).indices
        return labels[order] == query_labels.unsqueeze(1)

    def recall(self, batches) -> Dict[int, float]:
        features, labels = self.embed(batches)
        similarity = (features @ features.t()).fill_diagonal_(-2)
        hits = self.hits(similarity, labels, labels)
        return {k: hits[:, :k].any(1).float().mean().item() for k in self.ks}

    def mean_average_precision(self, similarity, query_labels, labels) -> float:
        hits = self.hits(similarity, query_labels, labels).float()
        precision = hits.cumsum(1).div(torch.arange(1, hits.size(1) + 1))  # raises
        return ((precision * hits).sum(1) / hits.sum(1).clamp(min=1)).mean().item()
