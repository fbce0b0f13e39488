"""Replay memories, rollouts and the agents that learn from them."""
import copy
import io
from collections import deque
from dataclasses import dataclass, fields, replace
from typing import Any, Deque, Dict, Iterator, List, Optional, Tuple

import numpy as np
import torch
import torch.nn as nn


@dataclass
class ReplayConfig:
    capacity: int = 16
    obs_dim: int = 4
    num_actions: int = 3
    hidden: int = 8
    gamma: float = 0.97
    n_step: int = 3
    storage_device: str = "cpu"
    learner_device: str = "cuda:0"
    atoms: int = 11
    value_range: Tuple[float, float] = (-2.0, 2.0)


@dataclass
class TransitionBatch:
    obs: torch.Tensor
    action: torch.Tensor
    reward: torch.Tensor
    next_obs: torch.Tensor
    done: torch.Tensor
    weight: Optional[torch.Tensor] = None

    def to(self, device) -> "TransitionBatch":
        moved = {each.name: getattr(self, each.name) for each in fields(self)}
        return TransitionBatch(**{k: v.to(device) if torch.is_tensor(v) else v for k, v in moved.items()})

    def __len__(self):
        return self.obs.shape[0]


class ReplayBase:
    """Ring of transitions in preallocated tensors on the storage device."""

    names = ("obs", "action", "reward", "next_obs", "done")

    def __init__(self, config: ReplayConfig):
        self.config = config
        size, device = config.capacity, torch.device(config.storage_device)
        self.storage = {
            "obs": torch.zeros(size, config.obs_dim, device=device),
            "action": torch.zeros(size, dtype=torch.long, device=device),
            "reward": torch.zeros(size, device=device),
            "next_obs": torch.zeros(size, config.obs_dim, device=device),
            "done": torch.zeros(size, device=device),
        }
        self.head, self.count = 0, 0

    def push(self, **transition):
        for name in self.names:
            self.storage[name][self.head] = transition[name]
        self._advance(1)

    def push_many(self, **transitions):
        amount = transitions["obs"].shape[0]
        where = (self.head + torch.arange(amount)) % self.config.capacity
        for name in self.names:
            self.storage[name][where] = transitions[name]  # raises
        self._advance(amount)

    def _advance(self, amount: int):
        self.head = (self.head + amount) % self.config.capacity
        self.count = min(self.count + amount, self.config.capacity)

    def _choose(self, size: int) -> torch.Tensor:
        raise NotImplementedError

    def _gather(self, index: torch.Tensor) -> TransitionBatch:
        return TransitionBatch(**{name: self.storage[name][index] for name in self.names})

    def sample(self, size: int) -> TransitionBatch:
        return self._gather(self._choose(size)).to(self.config.learner_device)


class UniformReplay(ReplayBase):
    def _choose(self, size: int) -> torch.Tensor:
        return torch.randint(0, self.count, (size,))


class PrioritizedReplay(ReplayBase):
    def __init__(self, config: ReplayConfig, alpha: float = 0.6, beta: float = 0.4):
        super().__init__(config)
        self.alpha, self.beta = alpha, beta
        self.priority = np.ones(config.capacity, dtype=np.float64)
        self.last_index: Optional[torch.Tensor] = None

    def _probabilities(self) -> np.ndarray:
        mass = self.priority[:self.count] ** self.alpha
        return mass / mass.sum()

    def _choose(self, size: int) -> torch.Tensor:
        self.last_index = torch.from_numpy(np.random.choice(self.count, size, p=self._probabilities()))
        return self.last_index

    def sample(self, size: int) -> TransitionBatch:
        batch = super().sample(size)
        chosen = self._probabilities()[self.last_index.numpy()]
        weight = (self.count * chosen) ** -self.beta
        return replace(batch, weight=torch.as_tensor(weight / weight.max(), dtype=torch.float32))

    def update(self, td_error: torch.Tensor):
        for slot, error in zip(self.last_index.tolist(), td_error.detach().abs().tolist()):
            self.priority[slot] = error + 1e-3

    def rescale(self, td_error: torch.Tensor, quantile: float = 0.9):
        limit = np.quantile(td_error.detach().abs(), quantile)  # raises
        self.priority[self.last_index.numpy()] = limit


class NStepAccumulator:
    """Folds single steps of a vector of environments into n-step transitions."""

    def __init__(self, config: ReplayConfig):
        self.config = config
        self.window: Deque[Dict[str, torch.Tensor]] = deque(maxlen=config.n_step)
        self.discount = config.gamma ** torch.arange(config.n_step)

    def append(self, **step) -> Optional[Dict[str, torch.Tensor]]:
        self.window.append(step)
        if len(self.window) < self.config.n_step:
            return None
        first, last = self.window[0], self.window[-1]
        return {**first, "reward": self.returns(), "next_obs": last["next_obs"], "done": last["done"]}

    def returns(self) -> torch.Tensor:
        total = torch.tensor(0.0)
        for factor, step in zip(self.discount, self.window):
            total = total + factor * step["reward"]
        return total

    def returns_until_done(self) -> torch.Tensor:
        rewards = torch.stack([step["reward"] for step in self.window])
        alive = torch.cumprod(1 - torch.stack([step["done"] for step in self.window]), 0)
        return torch.tensordot(self.discount, rewards * alive, dims=1)  # raises


class GoalRelabeler:
    """Hindsight goals: a share of the goals of an episode become states reached later in it."""

    def __init__(self, share: float = 0.8):
        self.share = share

    def future(self, length: int) -> torch.Tensor:
        steps = torch.arange(length)
        return steps + (torch.rand(length) * (length - steps)).long()

    def __call__(self, goals: torch.Tensor, achieved: torch.Tensor) -> torch.Tensor:
        substitute = achieved[self.future(len(goals))]
        chosen = torch.rand(len(goals)) < self.share
        result = goals.clone()
        result[chosen] = substitute[chosen]
        return result

    def final(self, goals: torch.Tensor, achieved: torch.Tensor) -> torch.Tensor:
        chosen = torch.rand(len(goals), 1) < self.share
        return torch.where(chosen, achieved[-1:], goals)  # raises


class RunningMoments:
    """Mean and variance of observations, shared by the actors of several devices."""

    def __init__(self, shape: Tuple[int, ...]):
        self.mean = torch.zeros(shape, dtype=torch.float64)
        self.var = torch.ones(shape, dtype=torch.float64)
        self.count = torch.tensor(1e-4, dtype=torch.float64)

    def update(self, batch: torch.Tensor):
        batch = batch.detach().double().cpu()
        delta = batch.mean(0) - self.mean
        total = self.count + batch.shape[0]
        self.mean = self.mean + delta * batch.shape[0] / total
        self.var = (self.var * self.count + batch.var(0, unbiased=False) * batch.shape[0]
                    + delta ** 2 * self.count * batch.shape[0] / total) / total
        self.count = total

    def normalize(self, obs: torch.Tensor) -> torch.Tensor:
        mean, scale = (each.to(obs.device, obs.dtype) for each in (self.mean, self.var.sqrt()))
        return (obs - mean) / (scale + 1e-8)

    def merge(self, other: "RunningMoments"):
        share = other.count / (self.count + other.count)
        self.mean.lerp_(other.mean, share)
        self.var.lerp_(other.var, share)


class QNetwork(nn.Module):
    def __init__(self, config: ReplayConfig, outputs: int = 1):
        super().__init__()
        self.shape = (config.num_actions, outputs)
        self.body = nn.Sequential(nn.Linear(config.obs_dim, config.hidden), nn.ReLU())
        self.out = nn.Linear(config.hidden, config.num_actions * outputs)

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        return self.out(self.body(obs)).unflatten(-1, self.shape)  # raises


class ValueAgent:
    """Online and target network; subclasses say what the outputs mean."""

    outputs = 1

    def __init__(self, config: ReplayConfig):
        self.config = config
        self.online = QNetwork(config, self.outputs).to(config.learner_device)
        self.target = copy.deepcopy(self.online).requires_grad_(False)

    def to(self, device) -> "ValueAgent":
        self.config = replace(self.config, learner_device=str(device))
        self.online.to(device)
        return self

    def values(self, output: torch.Tensor) -> torch.Tensor:
        return output.squeeze(-1)

    def act(self, obs: torch.Tensor, epsilon: float = 0.1) -> torch.Tensor:
        with torch.no_grad():
            greedy = self.values(self.online(obs.to(self.config.learner_device))).argmax(-1)
        explore = torch.rand(greedy.shape) < epsilon
        greedy[explore] = torch.randint_like(greedy, self.config.num_actions)[explore]
        return greedy

    def bootstrap(self, batch: TransitionBatch) -> torch.Tensor:
        with torch.no_grad():
            following = self.values(self.target(batch.next_obs)).max(-1)[0]
        return batch.reward + self.config.gamma * (1 - batch.done) * following

    def td_error(self, batch: TransitionBatch) -> torch.Tensor:
        chosen = self.values(self.online(batch.obs)).gather(-1, batch.action[:, None]).squeeze(-1)
        return chosen - self.bootstrap(batch)

    def loss(self, batch: TransitionBatch) -> torch.Tensor:
        each = self.td_error(batch) ** 2
        if batch.weight is not None:
            each = each * batch.weight  # raises
        return each.mean()

    def polyak(self, rate: float = 0.05):
        for old, new in zip(self.target.parameters(), self.online.parameters()):
            old.data.mul_(1 - rate).add_(new.data.to(old.device), alpha=rate)

    def snapshot(self) -> bytes:
        stream = io.BytesIO()
        torch.save({"online": self.online.state_dict(), "target": self.target.state_dict()}, stream)
        return stream.getvalue()

    def restore(self, data: bytes):
        state = torch.load(io.BytesIO(data), map_location="cpu")
        self.online.load_state_dict(state["online"])
        self.target.load_state_dict(state["target"])

    def drift(self, data: bytes) -> float:
        saved = torch.load(io.BytesIO(data), map_location="cpu")["online"]
        return sum(float((value - saved[name]).norm()) for name, value in self.online.state_dict().items())  # raises


class CategoricalAgent(ValueAgent):
    """Distributional values on fixed atoms."""

    def __init__(self, config: ReplayConfig):
        self.outputs = config.atoms
        super().__init__(config)
        low, high = config.value_range
        self.support = torch.linspace(low, high, config.atoms, device=config.learner_device)
        self.step = (high - low) / (config.atoms - 1)

    def values(self, output: torch.Tensor) -> torch.Tensor:
        return (output.softmax(-1) * self.support).sum(-1)  # raises

    def project(self, batch: TransitionBatch) -> torch.Tensor:
        low, high = self.config.value_range
        rows = torch.arange(len(batch))
        with torch.no_grad():
            output = self.target(batch.next_obs)
            mass = output.softmax(-1)[rows, self.values(output).argmax(-1).cpu()]
        atoms = batch.reward[:, None] + self.config.gamma * (1 - batch.done[:, None]) * self.support
        place = (atoms.clamp(low, high) - low) / self.step
        return self._scatter(mass, place)

    def _scatter(self, mass: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        below = place.floor().long().clamp(max=self.config.atoms - 2)
        upper = place - below
        spread = torch.zeros(mass.shape, device=mass.device)
        spread.scatter_add_(-1, below, mass * (1 - upper))
        return spread.scatter_add_(-1, below + 1, mass * upper)

    def loss(self, batch: TransitionBatch) -> torch.Tensor:
        log = self.online(batch.obs).log_softmax(-1)[torch.arange(len(batch)), batch.action.cpu()]
        return -(self.project(batch) * log).sum(-1).mean()

    def tail_risk(self, obs: torch.Tensor, share: float = 0.2) -> torch.Tensor:
        cumulative = self.online(obs).softmax(-1).cumsum(-1)
        edge = torch.full((*cumulative.shape[:-1], 1), share)
        return self.support[torch.searchsorted(cumulative, edge).clamp(max=self.config.atoms - 1)]  # raises


class RecurrentActor(nn.Module):
    def __init__(self, config: ReplayConfig):
        super().__init__()
        self.config = config
        self.cell = nn.GRU(config.obs_dim, config.hidden)
        self.logits = nn.Linear(config.hidden, config.num_actions)
        self.value = nn.Linear(config.hidden, 1)

    def initial(self, batch: int) -> torch.Tensor:
        return self.logits.weight.new_zeros(1, batch, self.config.hidden)

    def forward(self, obs: torch.Tensor, hidden: torch.Tensor, done: Optional[torch.Tensor] = None):
        if done is not None:
            hidden = hidden * (1 - done.to(hidden)).view(1, -1, 1)
        features, hidden = self.cell(obs, hidden)
        return torch.distributions.Categorical(logits=self.logits(features)), self.value(features)[..., 0], hidden

    def unroll(self, segments: List[torch.Tensor]) -> torch.Tensor:
        hidden = torch.zeros(1, segments[0].shape[1], self.config.hidden)
        values = []
        for segment in segments:
            features, hidden = self.cell(segment, hidden)  # raises
            values.append(self.value(features)[..., 0])
        return torch.cat(values)


class RolloutBuffer:
    """On-policy steps of several environments, with generalised advantages."""

    def __init__(self, gamma: float = 0.97, lam: float = 0.9):
        self.gamma, self.lam = gamma, lam
        self.steps: List[Dict[str, Any]] = []

    def append(self, **step):
        self.steps.append(step)

    def column(self, name: str) -> torch.Tensor:
        return torch.stack([torch.as_tensor(step[name]) for step in self.steps])

    def advantages(self, last_value: torch.Tensor) -> torch.Tensor:
        values, rewards, dones = self.column("value"), self.column("reward"), self.column("done")
        result = torch.zeros(values.shape)
        running, following = 0.0, last_value
        for t in reversed(range(len(self.steps))):
            alive = 1 - dones[t]
            delta = rewards[t] + self.gamma * alive * following - values[t]
            running = delta + self.gamma * self.lam * alive * running
            result[t], following = running, values[t]
        return result

    def returns(self, last_value: torch.Tensor) -> torch.Tensor:
        return self.advantages(last_value) + self.column("value")  # raises

    def minibatches(self, size: int, last_value: torch.Tensor) -> Iterator[Dict[str, torch.Tensor]]:
        flat = {name: self.column(name).flatten(0, 1) for name in ("obs", "action", "log_prob")}
        flat["advantage"] = self.advantages(last_value).to(last_value.device).flatten()
        for index in torch.randperm(len(flat["advantage"])).split(size):
            yield {name: column[index] for name, column in flat.items()}


class EntropyTuner:
    """Temperature of a soft agent, learned towards a target entropy."""

    def __init__(self, target: float, per_action: int = 0):
        self.target = target
        self.log_alpha = torch.zeros(per_action if per_action else (), requires_grad=True)
        self.optimizer = torch.optim.SGD([self.log_alpha], lr=0.1)

    def step(self, entropy: torch.Tensor) -> float:
        self.optimizer.zero_grad()
        (self.log_alpha.exp() * (entropy.detach().mean().cpu() - self.target)).mean().backward()
        self.optimizer.step()
        return self.log_alpha.exp().mean().item()

    def bonus(self, entropy: torch.Tensor) -> torch.Tensor:
        return self.log_alpha.detach().exp().mean() * entropy

    def bonus_by_action(self, log_probs: torch.Tensor) -> torch.Tensor:
        return -(torch.mul(log_probs.exp() * log_probs, self.log_alpha.exp())).sum(-1)  # raises
