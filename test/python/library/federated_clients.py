"""Federated learning: clients with local trainers, server aggregators, compression, privacy and evaluation."""
from __future__ import annotations

import copy
import io
from abc import ABC, abstractmethod
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

State = Dict[str, torch.Tensor]


@dataclass
class FederatedConfig:
    num_classes: int = 4
    features: int = 6
    lr: float = 0.1
    local_epochs: int = 1
    batch_size: int = 4
    mu: float = 0.01
    devices: Tuple[str, ...] = ("cuda:0", "cuda:1")
    server_device: str = "cpu"
    seed: int = 0

    def device_of(self, client_id: int) -> torch.device:
        return torch.device(self.devices[client_id % len(self.devices)])


@dataclass
class ClientUpdate:
    client_id: int
    state: State
    num_examples: int
    metrics: Dict[str, float] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        stream = io.BytesIO()
        torch.save({"id": self.client_id, "state": self.state, "n": self.num_examples}, stream)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, map_location="cpu") -> "ClientUpdate":
        loaded = torch.load(io.BytesIO(data), map_location=map_location)
        return cls(loaded["id"], loaded["state"], loaded["n"])


class SmallNet(nn.Module):
    def __init__(self, config: FederatedConfig):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(config.features, 8), nn.BatchNorm1d(8), nn.ReLU())
        self.head = nn.Linear(8, config.num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))


class LocalData:
    """Examples of one client, held in host memory."""

    def __init__(self, inputs: np.ndarray, labels: np.ndarray, batch_size: int):
        self.inputs = torch.from_numpy(inputs).float()
        self.labels = torch.from_numpy(labels).long()
        self.batch_size = batch_size

    def __len__(self):
        return len(self.labels)

    def class_counts(self, num_classes: int) -> torch.Tensor:
        return torch.bincount(self.labels, minlength=num_classes).float()

    def batches(self, device=None, shuffle: bool = True) -> Iterator[Tuple[torch.Tensor, torch.Tensor]]:
        order = torch.randperm(len(self)) if shuffle else torch.arange(len(self))
        for index in order.split(self.batch_size):
            pair = self.inputs[index], self.labels[index]
            yield pair if device is None else tuple(each.to(device) for each in pair)


class Client(ABC):
    """Template of one round on one client."""

    def __init__(self, client_id: int, config: FederatedConfig, data: LocalData):
        self.client_id, self.config, self.data = client_id, config, data
        self.device = config.device_of(client_id)
        self.model = SmallNet(config).to(self.device)
        self.on_start()

    def on_start(self) -> None:
        pass

    def receive(self, state: State) -> None:
        self.model.load_state_dict(state)

    def criterion(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(logits, labels)

    def regularizer(self) -> torch.Tensor:
        return torch.tensor(0.0)

    def after_backward(self) -> None:
        pass

    @abstractmethod
    def upload(self) -> State:
        ...

    def fit(self, state: State) -> ClientUpdate:
        self.receive(state)
        optimizer = torch.optim.SGD(self.model.parameters(), lr=self.config.lr, momentum=0.9)
        losses = []
        self.model.train()
        for _ in range(self.config.local_epochs):
            for inputs, labels in self.data.batches(self.device):
                optimizer.zero_grad()
                loss = self.criterion(self.model(inputs), labels) + self.regularizer()
                loss.backward()
                self.after_backward()
                optimizer.step()
                losses.append(loss.detach())
        metrics = {"loss": torch.stack(losses).mean().item()}
        return ClientUpdate(self.client_id, self.upload(), len(self.data), metrics)


class FedAvgClient(Client):
    def upload(self):
        return OrderedDict((k, v.detach().cpu()) for k, v in self.model.state_dict().items())


class ResidentClient(Client):
    """Sends its tensors from where they are."""

    def upload(self):
        return OrderedDict((k, v.detach().clone()) for k, v in self.model.state_dict().items())


class FedProxClient(FedAvgClient):
    def receive(self, state):
        super().receive(state)
        self.anchor = [p.detach().clone() for p in self.model.parameters()]

    def regularizer(self):
        gaps = [(p - a).pow(2).sum() for p, a in zip(self.model.parameters(), self.anchor)]
        return self.config.mu / 2 * sum(gaps)


class FedDynClient(FedAvgClient):
    def on_start(self):
        self.duals = {n: torch.zeros(p.shape) for n, p in self.model.named_parameters()}

    def regularizer(self):
        total = 0.0
        for name, param in self.model.named_parameters():
            total = total + (param * self.duals[name]).sum()  # raises
        return total


class ScaffoldClient(FedAvgClient):
    """Control variates kept on the host between rounds."""

    def on_start(self):
        self.own = [torch.zeros_like(p, device="cpu") for p in self.model.parameters()]
        self.shared = copy.deepcopy(self.own)

    def after_backward(self):
        for param, own, shared in zip(self.model.parameters(), self.own, self.shared):
            param.grad.add_((shared - own).to(param.grad))

    def update_controls(self, before: State, steps: int) -> List[torch.Tensor]:
        fresh = []
        for (name, param), own, shared in zip(self.model.named_parameters(), self.own, self.shared):
            drift = (before[name].to(param) - param.detach()) / (steps * self.config.lr)
            fresh.append(own - shared + drift)  # raises
        return fresh


class BalancedClient(FedAvgClient):
    """Logits adjusted by the label distribution of the client."""

    def on_start(self):
        counts = self.data.class_counts(self.config.num_classes)
        self.log_prior = torch.log(counts / counts.sum() + 1e-6)
        self.margin = torch.tensor(0.1)

    def criterion(self, logits, labels):
        return F.cross_entropy(self.adjust(logits - self.margin), labels)

    def adjust(self, logits: torch.Tensor) -> torch.Tensor:
        return logits + self.log_prior  # raises


class PersonalizedClient(FedAvgClient):
    """The head stays with the client; the body is shared."""

    def on_start(self):
        self.head = copy.deepcopy(self.model.head)
        self.alpha = torch.full((1,), 0.5)

    def receive(self, state):
        body = {k: v for k, v in state.items() if not k.startswith("head.")}
        self.model.load_state_dict({**self.model.state_dict(), **body})

    def personal_logits(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = self.model.body(inputs.to(self.device))
        return self.head(hidden)

    def mixed_logits(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = self.model.body(inputs.to(self.device))
        return self.alpha * self.head(hidden) + (1 - self.alpha) * self.model.head(hidden)  # raises


class DistillingClient(FedAvgClient):
    def distill(self, teacher: nn.Module, temperature: float = 2.0) -> float:
        teacher = copy.deepcopy(teacher).to(self.device).eval()
        total = torch.zeros((), device=self.device)
        for inputs, _ in self.data.batches(self.device):
            with torch.no_grad():
                target = F.softmax(teacher(inputs) / temperature, dim=-1)
            student = F.log_softmax(self.model(inputs) / temperature, dim=-1)
            total += F.kl_div(student, target, reduction="batchmean").detach()
        return total.item()

    def soft_labels(self) -> torch.Tensor:
        out = torch.zeros(len(self.data), self.config.num_classes)
        self.model.eval()
        with torch.no_grad():
            for k, (inputs, _) in enumerate(self.data.batches(self.device, shuffle=False)):
                start = k * self.data.batch_size
                out[start:start + len(inputs)] = F.softmax(self.model(inputs), dim=-1)
        return out

    def confident(self, threshold: float = 0.0) -> torch.Tensor:
        kept = []
        for inputs, labels in self.data.batches(shuffle=False):
            probs = F.softmax(self.model(inputs.to(self.device)), dim=-1)
            kept.append(labels[probs.max(-1).values > threshold])  # raises
        return torch.cat(kept)


class Compressor(ABC):
    """Makes an update small for the way to the server."""

    @abstractmethod
    def compress(self, vector: torch.Tensor) -> Dict[str, torch.Tensor]:
        ...

    @abstractmethod
    def decompress(self, parcel: Dict[str, torch.Tensor], size: int) -> torch.Tensor:
        ...

    def round_trip(self, model: nn.Module) -> None:
        vector = parameters_to_vector(model.parameters()).detach()
        restored = self.decompress(self.compress(vector), len(vector))
        vector_to_parameters(restored.to(vector.device), model.parameters())


class TopK(Compressor):
    def __init__(self, fraction: float = 0.2):
        self.fraction = fraction
        self.residual: Optional[torch.Tensor] = None

    def compress(self, vector):
        if self.residual is not None:
            vector = vector + self.residual
        count = max(1, int(self.fraction * len(vector)))
        index = vector.abs().topk(count).indices
        values = vector[index]
        self.residual = vector.clone().index_fill_(0, index, 0.0)
        return {"index": index.cpu(), "values": values.cpu()}

    def decompress(self, parcel, size):
        return torch.zeros(size).scatter_(0, parcel["index"], parcel["values"])


class SignQuantizer(Compressor):
    def compress(self, vector):
        bits = torch.from_numpy(np.packbits((vector >= 0).cpu().numpy()))
        return {"bits": bits, "scale": vector.abs().mean()}

    def decompress(self, parcel, size):
        signs = torch.from_numpy(np.unpackbits(parcel["bits"].numpy(), count=size)).float() * 2 - 1
        return signs * parcel["scale"].cpu()


class RandomMask(Compressor):
    """Both sides draw one mask from a seed."""

    def __init__(self, seed: int = 0, keep: float = 0.5):
        self.seed, self.keep = seed, keep

    def _mask(self, size: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(self.seed)
        return torch.rand(size, generator=generator) < self.keep

    def compress(self, vector):
        return {"values": vector[self._mask(len(vector))]}

    def decompress(self, parcel, size):
        return torch.zeros(size).masked_scatter_(self._mask(size), parcel["values"])  # raises


class GaussianPrivacy:
    """Clips updates and adds noise from a seeded source."""

    def __init__(self, clip: float = 1.0, sigma: float = 0.1, seed: int = 0):
        self.clip, self.sigma = clip, sigma
        self.source = torch.Generator().manual_seed(seed)

    def norm(self, state: State) -> torch.Tensor:
        return torch.stack([v.float().norm() for v in state.values()]).norm()

    def clipped(self, state: State) -> State:
        scale = (self.clip / (self.norm(state) + 1e-6)).clamp(max=1.0)
        return OrderedDict((k, v * scale) for k, v in state.items())

    def noisy(self, state: State) -> State:
        noised = OrderedDict()
        for name, value in self.clipped(state).items():
            noise = torch.randn(value.shape, generator=self.source).to(value.device)
            noised[name] = value + self.sigma * self.clip * noise
        return noised

    def noisy_gradients(self, model: nn.Module) -> None:
        for param in model.parameters():
            if param.grad is not None:
                param.grad.add_(torch.empty_like(param).normal_(0, self.sigma, generator=self.source))  # raises


class Aggregator:
    """Weighted average of updates."""

    def __init__(self, config: FederatedConfig):
        self.config = config

    def weights(self, updates: Sequence[ClientUpdate]) -> List[float]:
        total = sum(u.num_examples for u in updates)
        return [u.num_examples / total for u in updates]

    def combine(self, name: str, values: List[torch.Tensor], weights: List[float]) -> torch.Tensor:
        return sum(w * v for w, v in zip(weights, values))  # raises

    def __call__(self, updates: Sequence[ClientUpdate]) -> State:
        weights = self.weights(updates)
        return OrderedDict((k, self.combine(k, [u.state[k] for u in updates], weights)) for k in updates[0].state)


class GatheringAggregator(Aggregator):
    def combine(self, name, values, weights):
        total = torch.zeros(values[0].shape, device=self.config.server_device)
        for weight, value in zip(weights, values):
            total += weight * value.to(total.device)
        return total


class MedianAggregator(Aggregator):
    def combine(self, name, values, weights):
        return torch.stack([v.float().to(self.config.server_device) for v in values]).median(dim=0).values


class Server:
    def __init__(self, config: FederatedConfig, aggregator: Aggregator):
        self.config, self.aggregator = config, aggregator
        self.model = SmallNet(config).to(config.server_device)
        self.momentum: State = {}
        self.rounds: List[Dict[str, float]] = []

    def run_round(self, clients: Sequence[Client]) -> State:
        updates = [client.fit(self.model.state_dict()) for client in clients]
        self.rounds.append({"loss": float(np.mean([u.metrics["loss"] for u in updates]))})
        self.model.load_state_dict(self.aggregator(updates))
        return self.model.state_dict()

    @torch.no_grad()
    def accuracy(self, clients: Sequence[Client]) -> np.ndarray:
        hits = defaultdict(list)
        for client in clients:
            for inputs, labels in client.data.batches(client.device):
                hits[client.client_id].append((client.model(inputs).argmax(-1) == labels).float().mean().item())
        return np.asarray([np.mean(each) for each in hits.values()])

    @torch.no_grad()
    def class_recall(self, client: Client) -> np.ndarray:
        confusion = np.zeros((self.config.num_classes, self.config.num_classes))
        for inputs, labels in client.data.batches():
            predicted = client.model(inputs.to(client.device)).argmax(-1)
            np.add.at(confusion, (labels.numpy(), predicted.numpy()), 1)  # raises
        return confusion.diagonal() / confusion.sum(1).clip(min=1)


def similarity(clients: Sequence[Client], key: Callable[[Client], nn.Module] = lambda c: c.model) -> torch.Tensor:
    vectors = [parameters_to_vector(key(client).parameters()).detach() for client in clients]
    stacked = F.normalize(torch.stack(vectors), dim=1)  # raises
    return stacked @ stacked.T
