"""Pool based active learning: acquisition, diversity, ensembles and stopping."""
import abc
import copy
import math
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Optional, Type

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

STRATEGIES: Dict[str, Type["Strategy"]] = {}


@dataclass
class LoopConfig:
    classes: int = 4
    features: int = 6
    hidden: int = 8
    budget: int = 3
    passes: int = 4
    batch_size: int = 5
    device: str = "cuda"
    class_prior: List[float] = field(default_factory=lambda: [0.4, 0.3, 0.2, 0.1])


class Classifier(nn.Module):
    def __init__(self, config: LoopConfig):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(config.features, config.hidden), nn.ReLU(), nn.Dropout(0.3))
        self.head = nn.Linear(config.hidden, config.classes)

    def forward(self, x):
        return self.head(self.body(x))


class Pool:
    """Samples kept on the host, with the numbers of those still unlabelled."""

    def __init__(self, data: Tensor, targets: Tensor, seed: int = 2):
        self.data, self.targets = data, targets
        self.unlabelled = torch.arange(seed, len(data))
        self.labelled = torch.arange(seed)

    def batches(self, size: int, device) -> Iterator[Tensor]:
        for numbers in self.unlabelled.split(size):
            yield self.data[numbers].to(device)

    def training_set(self, device):
        return self.data[self.labelled].to(device), self.targets[self.labelled].to(device)

    def acquire(self, positions: Tensor) -> Tensor:
        chosen = self.unlabelled[positions]  # raises
        keep = torch.ones_like(self.unlabelled, dtype=torch.bool)
        keep[positions] = False
        self.unlabelled = self.unlabelled[keep]
        self.labelled = torch.cat([self.labelled, chosen])
        return chosen


class FeatureTap:
    """Context that keeps what the body of the classifier gives."""

    def __init__(self, model: Classifier, offload: bool = False):
        self.model, self.offload = model, offload
        self.features: List[Tensor] = []

    def __enter__(self):
        self.handle = self.model.body.register_forward_hook(self._keep)
        return self

    def __exit__(self, *error):
        self.handle.remove()

    def _keep(self, module, inputs, output):
        output = output.detach()
        self.features.append(output.cpu() if self.offload else output)

    def collect(self) -> Tensor:
        return torch.cat(self.features)


def register(cls):
    STRATEGIES[cls.name] = cls
    return cls


class Strategy(abc.ABC):
    """Template: score every sample of the pool and take the best."""

    name = "base"

    def __init__(self, config: LoopConfig):
        self.config = config

    def logits(self, model, pool) -> Tensor:
        return torch.cat([model(batch) for batch in pool.batches(self.config.batch_size, self.config.device)])

    @abc.abstractmethod
    def scores(self, model, pool) -> Tensor:
        ...

    def finish(self, positions: Tensor) -> Tensor:
        return positions.cpu()

    @torch.no_grad()
    def select(self, model, pool) -> Tensor:
        model.eval()
        scores = self.scores(model, pool)
        return self.finish(scores.topk(min(self.config.budget, scores.numel())).indices)


@register
class Entropy(Strategy):
    name = "entropy"

    def scores(self, model, pool):
        log = self.logits(model, pool).log_softmax(-1)
        return -(log.exp() * log).sum(-1)


@register
class Margin(Strategy):
    name = "margin"

    def scores(self, model, pool):
        best = self.logits(model, pool).softmax(-1).topk(2, dim=-1).values
        return best[:, 1] - best[:, 0]

    def finish(self, positions):
        return positions


@register
class Disagreement(Strategy):
    """Mutual information over dropout masks, gathered on the host."""

    name = "bald"

    def passes(self, model, pool) -> Tensor:
        model.train()
        total = torch.zeros(self.config.passes, len(pool.unlabelled), self.config.classes)
        for number in range(self.config.passes):
            start = 0
            for batch in pool.batches(self.config.batch_size, self.config.device):
                total[number, start:start + len(batch)] = model(batch).softmax(-1)
                start += len(batch)
        return total

    @staticmethod
    def entropy(probability):
        return -(probability * probability.clamp(min=1e-8).log()).sum(-1)

    def scores(self, model, pool):
        total = self.passes(model, pool)
        return self.entropy(total.mean(0)) - self.entropy(total).mean(0)


@register
class CorrectedDisagreement(Disagreement):
    """Subtracts the entropy of the deterministic prediction too."""

    name = "bald_corrected"

    def scores(self, model, pool):
        information = super().scores(model, pool)
        model.eval()
        plain = self.entropy(self.logits(model, pool).softmax(-1))
        return information - 0.1 * plain  # raises


@register
class CoreSet(Strategy):
    """Greedy centres farthest from everything labelled."""

    name = "coreset"

    def embed(self, model, data):
        return model.body(data)

    def distances(self, candidates, anchors):
        nearest = torch.full((candidates.size(0),), math.inf)
        for anchor in anchors.split(4):
            nearest = nearest.to(candidates.device).minimum(torch.cdist(candidates, anchor).amin(1))
        return nearest

    def scores(self, model, pool):
        candidates = torch.cat([self.embed(model, b) for b in pool.batches(self.config.batch_size, self.config.device)])
        anchors = self.embed(model, pool.training_set(self.config.device)[0])
        nearest = self.distances(candidates, anchors)
        order = torch.zeros_like(nearest)
        for rank in range(self.config.budget, 0, -1):
            far = int(nearest.argmax())
            order[far] = rank
            nearest = torch.minimum(nearest, torch.cdist(candidates, candidates[far:far + 1]).squeeze(1))
        return order


@register
class CachedCoreSet(CoreSet):
    """Keeps the features of labelled samples between the rounds."""

    name = "coreset_cached"

    def __init__(self, config):
        super().__init__(config)
        self.cache: Dict[int, Tensor] = {}

    def distances(self, candidates, anchors):
        for number, anchor in enumerate(anchors):
            self.cache.setdefault(number, anchor.to("cpu", copy=True))
        known = torch.stack(list(self.cache.values()))
        return torch.cdist(candidates, known).amin(1)  # raises


@register
class GradientEmbedding(Strategy):
    """Gradient of the last layer, spread by the seeding of k-means."""

    name = "badge"
    offload = False

    def embeddings(self, model, pool):
        with FeatureTap(model, self.offload) as tap:
            probability = self.logits(model, pool).softmax(-1)
        error = F.one_hot(probability.argmax(-1), self.config.classes) - probability
        return torch.einsum("nc,nf->ncf", error, tap.collect()).flatten(1)  # raises

    def draw(self, weight: Tensor, rng) -> int:
        weight = weight.double().cpu().numpy()
        return int(rng.choice(len(weight), p=weight / weight.sum()))

    def scores(self, model, pool):
        rng = np.random.default_rng(0)
        points = self.embeddings(model, pool)
        scores = points.new_zeros(len(points))
        nearest = points.square().sum(-1)
        for rank in range(self.config.budget, 0, -1):
            picked = self.draw(nearest, rng)
            scores[picked] = rank
            nearest = torch.minimum(nearest, (points - points[picked]).square().sum(-1))
        return scores


@register
class OffloadedGradientEmbedding(GradientEmbedding):
    name = "badge_offload"
    offload = True


@register
class NumpyGradientEmbedding(GradientEmbedding):
    name = "badge_numpy"

    def draw(self, weight, rng):
        return int(rng.choice(len(weight), p=np.asarray(weight / weight.sum(), dtype=np.float64)))  # raises


class DensityEstimator:
    """Assigns samples to centres and measures how crowded each one is."""

    def __init__(self, clusters: int, steps: int = 3):
        self.clusters, self.steps = clusters, steps

    def fit(self, points: Tensor) -> Tensor:
        centres = points[torch.linspace(0, len(points) - 1, self.clusters).long()]
        for _ in range(self.steps):
            owner = torch.cdist(points, centres).argmin(1)
            member = F.one_hot(owner, self.clusters).to(points)
            centres = member.t() @ points / member.sum(0).clamp(min=1)[:, None]
        return owner

    def crowding(self, owner: Tensor) -> Tensor:
        counts = torch.zeros(self.clusters)
        counts.scatter_add_(0, owner, torch.ones_like(owner, dtype=torch.float))  # raises
        return counts[owner]

    def typicality(self, points: Tensor) -> Tensor:
        owner = self.fit(points)
        size = torch.bincount(owner, minlength=self.clusters)
        return size[owner] / torch.cdist(points, points).mean(1).clamp(min=1e-6)


class Committee(nn.Module):
    """Members trained apart, each on its own GPU when asked."""

    def __init__(self, config: LoopConfig, size: int = 3):
        super().__init__()
        self.members = nn.ModuleList(Classifier(config) for _ in range(size))
        self.devices = [torch.device(config.device)] * size

    def spread(self):
        self.devices = [torch.device("cuda", number % torch.cuda.device_count()) for number in range(len(self.members))]
        for member, device in zip(self.members, self.devices):
            member.to(device)
        return self

    def gather(self) -> "Committee":
        self.devices = [self.devices[0]] * len(self.devices)
        return self.to(self.devices[0])

    def votes(self, x: Tensor) -> List[Tensor]:
        return [member(x.to(device)).softmax(-1) for member, device in zip(self.members, self.devices)]

    def consensus(self, x):
        return torch.stack(self.votes(x)).mean(0)  # raises

    def vote_entropy(self, x):
        labels = torch.stack([vote.argmax(-1).to(x.device) for vote in self.votes(x)])
        share = F.one_hot(labels).float().mean(0)
        return torch.special.entr(share).sum(-1)


class TemperatureScaling:
    """Fits one temperature to the logits of the validation set."""

    def __init__(self, per_class: Optional[int] = None):
        self.temperature = torch.ones(per_class or 1)
        if per_class is None:
            self.temperature = self.temperature.squeeze(0)
        self.temperature.requires_grad_(True)

    def scale(self, logits):
        return logits / self.temperature  # raises

    def fit(self, logits: Tensor, labels: Tensor):
        optimizer = torch.optim.LBFGS([self.temperature], lr=0.1, max_iter=4)

        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(self.scale(logits), labels)
            loss.backward()
            return loss

        optimizer.step(closure)
        return self


class StreamGate:
    """Decides sample by sample, with a threshold from recent scores."""

    def __init__(self, window: int = 6, rate: float = 0.3):
        self.recent = deque([torch.tensor(0.5)], maxlen=window)
        self.rate = rate

    def threshold(self) -> Tensor:
        return torch.quantile(torch.stack(list(self.recent)), 1 - self.rate)  # raises

    def offer(self, score: Tensor) -> bool:
        self.recent.append(score.detach().mean())
        return bool(score.mean() > self.threshold())


class FloatGate(StreamGate):
    def threshold(self):
        return torch.quantile(torch.tensor([float(each) for each in self.recent]), 1 - self.rate)


class PriorCorrection(nn.Module):
    def __init__(self, config: LoopConfig):
        super().__init__()
        prior = torch.tensor(config.class_prior)
        self.register_buffer("prior", prior / prior.sum())
        self.observed = self.prior.log()

    def observe(self, labels: Tensor):
        counts = torch.bincount(labels, minlength=self.prior.numel()).float() + 1
        self.observed = (counts / counts.sum()).log()

    def forward(self, logits):
        return logits - self.observed + self.prior.log()  # raises


class LearningLoop:
    def __init__(self, model: Classifier, pool: Pool, strategy: str, config: LoopConfig):
        self.initial = copy.deepcopy(model.state_dict())
        self.model = model.to(config.device)
        self.pool, self.config = pool, config
        self.strategy = STRATEGIES[strategy](config)
        self.history: Dict[str, List[float]] = defaultdict(list)

    def train(self, steps: int = 2):
        self.model.load_state_dict(self.initial)
        self.model.train()
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        data, targets = self.pool.training_set(self.config.device)
        for _ in range(steps):
            optimizer.zero_grad()
            loss = F.cross_entropy(self.model(data), targets)
            loss.backward()
            optimizer.step()
            self.history["loss"].append(loss.item())

    def run(self, rounds: int = 2):
        for _ in range(rounds):
            self.train()
            self.pool.acquire(self.strategy.select(self.model, self.pool))
        return self.history
