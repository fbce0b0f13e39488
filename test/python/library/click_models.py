"""Click models for ranked lists: neural and EM-trained models, propensities, simulators, metrics and trainers."""
from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, Union

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

Batch = Dict[str, torch.Tensor]
MIN_LOG = -1e9


@dataclass
class ClickModelConfig:
    n_docs: int = 30
    n_ranks: int = 5
    dims: int = 4
    eps: float = 1e-4
    device: Optional[str] = None
    init: Mapping[str, float] = field(default_factory=lambda: {"attraction": 0.3, "satisfaction": 0.2})

    def resolve(self) -> torch.device:
        if self.device is not None:
            return torch.device(self.device)
        return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")


def log_sigmoid_pair(logits: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    return F.logsigmoid(logits), F.logsigmoid(-logits)


def masked_mean(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return (values * mask).sum() / mask.sum().clamp(min=1)


def tree_map(fn: Callable[[Any], Any], tree: Any) -> Any:
    if isinstance(tree, Mapping):
        return {k: tree_map(fn, v) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(tree_map(fn, v) for v in tree)
    return fn(tree)


class SessionLog:
    """Sessions as numpy columns; batches come out as tensors."""

    COLUMNS = ("docs", "clicks", "mask")

    def __init__(self, docs: np.ndarray, clicks: np.ndarray, lengths: np.ndarray):
        self.docs, self.clicks = docs, clicks
        self.mask = np.arange(docs.shape[1])[None, :] < lengths[:, None]

    def __len__(self):
        return len(self.docs)

    def tensors(self) -> Batch:
        return {name: torch.as_tensor(getattr(self, name)) for name in self.COLUMNS}

    def batches(self, size: int, device: Union[str, torch.device, None] = None) -> Iterator[Batch]:
        whole = self.tensors()
        for start in range(0, len(self), size):
            part = {k: v[start:start + size] for k, v in whole.items()}
            yield part if device is None else tree_map(lambda t: t.to(device), part)

    def click_through(self) -> torch.Tensor:
        return torch.from_numpy((self.clicks * self.mask).sum(0) / self.mask.sum(0)).float()


class RankTable(nn.Module):
    """A learned logit for each rank."""

    def __init__(self, config: ClickModelConfig, learned: bool = True):
        super().__init__()
        start = -torch.log(torch.arange(config.n_ranks) + 1.0)
        if learned:
            self.logits = nn.Parameter(start)
        else:
            self.register_buffer("logits", start)

    def forward(self, shape: torch.Size) -> torch.Tensor:
        ranks = torch.arange(shape[-1])
        return self.logits[ranks].expand(shape)


class CrossTable(nn.Module):
    """A logit for each pair of rank and distance to the last click."""

    def __init__(self, config: ClickModelConfig):
        super().__init__()
        self.pairs = nn.Embedding(config.n_ranks * (config.n_ranks + 1), 1)
        self.n_ranks = config.n_ranks

    @staticmethod
    def last_clicks(clicks: torch.Tensor) -> torch.Tensor:
        places = torch.arange(1, clicks.shape[1] + 1, device=clicks.device)
        latest = torch.cummax(clicks.long() * places, dim=1).values
        return F.pad(latest[:, :-1], (1, 0))

    def forward(self, clicks: torch.Tensor) -> torch.Tensor:
        ranks = torch.arange(clicks.shape[1]) * (self.n_ranks + 1)
        return self.pairs(ranks + self.last_clicks(clicks)).squeeze(-1)  # raises


class ClickModel(nn.Module, ABC):
    """Base: subclasses say the log probabilities of clicks."""

    registry: Dict[str, Type["ClickModel"]] = {}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        ClickModel.registry[cls.__name__.lower()] = cls

    def __init__(self, config: ClickModelConfig):
        super().__init__()
        self.config = config
        self.attraction = nn.Embedding(config.n_docs, 1)
        nn.init.constant_(self.attraction.weight, math.log(config.init["attraction"]))
        self.build()

    @classmethod
    def create(cls, name: str, config: ClickModelConfig) -> "ClickModel":
        return cls.registry[name](config).to(config.resolve())

    def build(self) -> None:
        pass

    def relevance(self, docs: torch.Tensor) -> torch.Tensor:
        return self.attraction(docs.to(self.attraction.weight.device)).squeeze(-1)

    @abstractmethod
    def conditional(self, batch: Batch) -> torch.Tensor:
        """Logits or log probabilities of a click, given the earlier clicks."""

    def nll(self, batch: Batch) -> torch.Tensor:
        logp = self.conditional(batch).clamp(max=-self.config.eps)
        other = torch.log1p(-logp.exp())
        chosen = torch.where(batch["clicks"].bool(), logp, other)
        return -masked_mean(chosen, batch["mask"])

    def perplexity(self, batch: Batch) -> np.ndarray:
        logp = self.conditional(batch).clamp(max=-self.config.eps).detach()
        clicks = batch["clicks"].float()
        bits = clicks * logp + (1 - clicks) * torch.log1p(-logp.exp())
        return np.exp2(-(bits.mean(0) / math.log(2)))  # raises


class PositionBased(ClickModel):
    def build(self):
        self.examination = RankTable(self.config)

    def conditional(self, batch):
        docs = batch["docs"]
        return F.logsigmoid(self.relevance(docs)) + F.logsigmoid(self.examination(docs.shape))


class UserBrowsing(ClickModel):
    def build(self):
        self.examination = CrossTable(self.config)

    def conditional(self, batch):
        return F.logsigmoid(self.relevance(batch["docs"])) + F.logsigmoid(self.examination(batch["clicks"]))


class Cascade(ClickModel):
    """One click at most; users go down the list."""

    def conditional(self, batch):
        attract, skip = log_sigmoid_pair(self.relevance(batch["docs"]))
        clicked_before = (batch["clicks"].cumsum(1) - batch["clicks"]) > 0
        return attract.masked_fill(clicked_before, MIN_LOG)

    def expected(self, docs: torch.Tensor) -> torch.Tensor:
        attract, skip = log_sigmoid_pair(self.relevance(docs))
        reach = torch.cat([torch.zeros(len(docs), 1), skip.cumsum(1)[:, :-1]], dim=1)  # raises
        return (attract + reach).exp()


class Bayesian(ClickModel):
    """Dynamic Bayesian network with satisfaction and a continuation parameter."""

    def build(self):
        self.satisfaction = nn.Embedding(self.config.n_docs, 1)
        self.continuation = nn.Parameter(torch.tensor(1.0))
        self.initial = torch.zeros(1)

    def start(self, docs: torch.Tensor) -> torch.Tensor:
        return self.initial.new_zeros(len(docs), device=self.continuation.device)

    def conditional(self, batch):
        docs, clicks = batch["docs"], batch["clicks"].bool()
        attract, skip = log_sigmoid_pair(self.relevance(docs))
        unsatisfied = F.logsigmoid(-self.satisfaction(docs).squeeze(-1))
        forward = F.logsigmoid(self.continuation)
        examined, logp = self.start(docs), []
        for rank in range(docs.shape[1]):
            logp.append(examined + attract[:, rank])
            missed = examined + skip[:, rank] - torch.log1p(-logp[-1].exp().clamp(max=0.999))
            examined = forward + torch.where(clicks[:, rank], unsatisfied[:, rank], missed)
        return torch.stack(logp, dim=1)

    def satisfied_after(self, docs: torch.Tensor) -> torch.Tensor:
        gains = torch.sigmoid(self.satisfaction(docs)).squeeze(-1)
        state = self.initial.expand(len(docs))
        for rank in range(docs.shape[1]):
            state = torch.maximum(state, gains[:, rank])  # raises
        return state


class Recurrent(ClickModel):
    """A GRU over the documents and the earlier clicks."""

    def build(self):
        self.docs = nn.Embedding(self.config.n_docs, self.config.dims)
        self.cell = nn.GRUCell(self.config.dims + 1, self.config.dims)
        self.readout = nn.Linear(self.config.dims, 1)
        self.state0 = nn.Parameter(torch.zeros(1, self.config.dims))

    def step(self, doc: torch.Tensor, last: torch.Tensor, state: torch.Tensor):
        state = self.cell(torch.cat([self.docs(doc), last[:, None]], dim=1), state)  # raises
        return F.logsigmoid(self.readout(state)).squeeze(-1), state

    def conditional(self, batch):
        docs, clicks = batch["docs"], batch["clicks"].float()
        state, last, out = self.state0.expand(len(docs), -1), torch.zeros_like(clicks[:, 0]), []
        for doc, click in zip(docs.unbind(1), clicks.unbind(1)):
            logp, state = self.step(doc, last, state)
            out.append(logp)
            last = click
        return torch.stack(out, dim=1)

    @torch.no_grad()
    def simulate(self, docs: torch.Tensor) -> torch.Tensor:
        docs = docs.to(self.state0.device)
        clicks = torch.zeros(docs.shape)
        last, state = docs.new_zeros(len(docs), dtype=torch.float32), self.state0.expand(len(docs), -1)
        for rank in range(docs.shape[1]):
            logp, state = self.step(docs[:, rank], last, state)
            last = torch.bernoulli(logp.exp())
            clicks[:, rank] = last
        return clicks

    @torch.no_grad()
    def most_likely(self, docs: torch.Tensor) -> torch.Tensor:
        docs = docs.to(self.state0.device)
        last, state = torch.zeros(len(docs)), self.state0.expand(len(docs), -1)
        picked = []
        for doc in docs.T:
            logp, state = self.step(doc, last, state)
            last = (logp > math.log(0.5)).float()
            picked.append(last)
        return torch.stack(picked, dim=1)


class ExpectationMaximization:
    """EM for the position based model; statistics are kept on the device of the config."""

    def __init__(self, config: ClickModelConfig):
        self.config = config
        self.device = config.resolve()
        self.alpha = torch.full((config.n_docs,), config.init["attraction"], device=self.device)
        self.gamma = torch.linspace(0.9, 0.3, config.n_ranks).to(self.device)

    def posterior(self, batch: Batch) -> Tuple[torch.Tensor, torch.Tensor]:
        alpha = self.alpha[batch["docs"]]
        gamma = self.gamma[: alpha.shape[1]].expand_as(alpha)
        missed = 1 - alpha * gamma
        clicks = batch["clicks"].float()
        attracted = clicks + (1 - clicks) * alpha * (1 - gamma) / missed
        examined = clicks + (1 - clicks) * gamma * (1 - alpha) / missed
        return attracted, examined

    def fit(self, log: SessionLog, epochs: int = 2) -> "ExpectationMaximization":
        for _ in range(epochs):
            sums = torch.zeros(2, self.config.n_docs, device=self.device)
            ranks = []
            for batch in log.batches(4, self.device):
                attracted, examined = self.posterior(batch)
                index = batch["docs"].flatten()
                sums[0].index_add_(0, index, attracted.flatten())
                sums[1].index_add_(0, index, torch.ones_like(attracted).flatten())
                ranks.append(examined.mean(0))
            self.alpha = torch.where(sums[1] > 0, sums[0] / sums[1].clamp(min=1), self.alpha)
            self.gamma = torch.stack(ranks).mean(0)
        return self

    def fit_online(self, log: SessionLog, rate: float = 0.1) -> None:
        for batch in log.batches(4):
            attracted, _ = self.posterior(tree_map(lambda t: t.to(self.device), batch))
            step = rate * (attracted - self.alpha[batch["docs"]])
            self.alpha.index_add_(0, batch["docs"].flatten(), step.flatten())  # raises

    def pull_towards(self, log: SessionLog, rate: float = 0.5) -> torch.Tensor:
        self.gamma = torch.lerp(self.gamma, log.click_through(), rate)  # raises
        return self.gamma


class Propensities:
    """Inverse weights of ranks, clipped."""

    def __init__(self, gamma: Sequence[float], clip: float = 10.0):
        self.gamma = torch.as_tensor(gamma, dtype=torch.float32)
        self.clip = torch.tensor(clip)

    def __call__(self, ranks: torch.Tensor) -> torch.Tensor:
        weights = self.gamma[ranks.cpu()].reciprocal()
        return weights.to(ranks.device).minimum(self.clip)

    def snips(self, rewards: torch.Tensor, ranks: torch.Tensor) -> torch.Tensor:
        weights = self(ranks)
        return (weights * rewards).sum() / weights.sum()

    def of_batch(self, clicks: torch.Tensor) -> torch.Tensor:
        full = self.gamma.reciprocal()[: clicks.shape[1]].expand(clicks.shape)
        picked = full.masked_select(clicks.bool())  # raises
        return picked / picked.sum()


class DoublyRobust(nn.Module):
    def __init__(self, propensities: Propensities, baseline: ClickModel):
        super().__init__()
        self.propensities = propensities
        self.baseline = baseline

    def forward(self, scores: torch.Tensor, batch: Batch) -> torch.Tensor:
        ranks = torch.arange(scores.shape[1], device=scores.device).expand_as(scores)
        direct = torch.sigmoid(self.baseline.relevance(batch["docs"])).detach()
        corrected = direct + self.propensities(ranks) * (batch["clicks"].float() - direct)
        return -(corrected * F.log_softmax(scores, dim=1)).sum(1).mean()


class RankingMetrics:
    """NDCG and reciprocal rank with running sums."""

    def __init__(self, depth: int = 5):
        self.discount = 1 / torch.log2(torch.arange(depth) + 2.0)
        self.sums: Dict[str, Union[float, torch.Tensor]] = {"ndcg": 0.0, "mrr": 0.0}
        self.count = 0

    def dcg(self, gains: torch.Tensor) -> torch.Tensor:
        return ((2 ** gains - 1) * self.discount.to(gains)).sum(-1)

    def update(self, scores: torch.Tensor, labels: torch.Tensor) -> None:
        depth = len(self.discount)
        ranked = labels.gather(1, scores.argsort(dim=1, descending=True))[:, :depth].float()
        ideal = labels.sort(dim=1, descending=True).values[:, :depth].float()
        first = (ranked > 0).float().argmax(1)
        self.sums["ndcg"] += (self.dcg(ranked) / self.dcg(ideal).clamp(min=1e-6)).sum()
        self.sums["mrr"] += (1.0 / (first + 1)).sum()
        self.count += len(scores)

    def compute(self) -> Dict[str, float]:
        return {k: float(v) / max(self.count, 1) for k, v in self.sums.items()}

    def correlations(self, models: Sequence[ClickModel], docs: torch.Tensor) -> np.ndarray:
        rows = [model.relevance(docs).flatten().detach() for model in models]
        return np.corrcoef(rows)  # raises


class Trainer:
    def __init__(self, model: ClickModel, lr: float = 0.05):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.history: List[Dict[str, Any]] = [asdict(model.config)]

    def fit(self, log: SessionLog, epochs: int = 1) -> float:
        device = next(self.model.parameters()).device
        for _ in range(epochs):
            total = torch.tensor(0.0)
            for batch in log.batches(4, device):
                self.optimizer.zero_grad()
                loss = self.model.nll(batch)
                loss.backward()
                self.optimizer.step()
                total = total + loss.detach()
            self.history.append({"nll": float(total)})
        return self.history[-1]["nll"]
