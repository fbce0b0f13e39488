"""Reinforcement learning components: distributions, returns, running statistics, storage and policies."""
import abc
import math
from collections import deque
from typing import Dict, NamedTuple, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical, Normal


class Batch(NamedTuple):
    obs: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor
    dones: torch.Tensor

    def to(self, device):
        return Batch(*(each.to(device) for each in self))


def as_numpy(value):
    if isinstance(value, dict):
        return {key: as_numpy(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_numpy(each) for each in value]
    return value.detach().cpu().numpy() if torch.is_tensor(value) else np.asarray(value)


def to_tensors(value, like=None):
    if isinstance(value, dict):
        return {key: to_tensors(each, like) for key, each in value.items()}
    made = torch.as_tensor(value, dtype=torch.float32)
    return made if like is None else made.to(like.device)


class Distribution(abc.ABC):
    """Base: a head makes parameters, proba_distribution keeps what torch makes of them."""

    def __init__(self, dim):
        self.dim = dim
        self.inner = None

    @abc.abstractmethod
    def proba_distribution(self, params):
        """Keeps the parameters."""

    def mode(self):
        return self.inner.mean

    def actions(self, deterministic=False):
        return self.mode() if deterministic else self.inner.sample()

    def log_prob(self, actions):
        return self.inner.log_prob(actions)

    def entropy(self):
        return self.inner.entropy()


class MaskedCategorical(Distribution):
    neg_inf = torch.tensor(-1e8)

    def proba_distribution(self, params, mask=None):
        if mask is not None:
            mask = torch.as_tensor(mask, dtype=torch.bool, device=params.device)
            params = torch.where(mask, params, self.neg_inf.to(params))
        self.inner = Categorical(logits=params)
        return self

    def mode(self):
        return self.inner.probs.argmax(-1)

    def relabel(self, actions, table):
        return torch.as_tensor(table)[actions]  # raises


class SquashedGaussian(Distribution):
    def __init__(self, dim, low=-1.0, high=1.0, std_bounds=(-5.0, 2.0)):
        super().__init__(dim)
        self.low, self.high = torch.full((dim,), low), torch.full((dim,), high)
        self.std_bounds = std_bounds

    def proba_distribution(self, params):
        mean, log_std = params.chunk(2, dim=-1)
        self.inner = Normal(mean, log_std.clamp(*self.std_bounds).exp())
        return self

    def actions(self, deterministic=False):
        return torch.tanh(self.mode() if deterministic else self.inner.rsample())

    def log_prob(self, actions):
        clipped = actions.clamp(-1 + 1e-6, 1 - 1e-6)
        jacobian = torch.log(1 - clipped.pow(2) + 1e-6)
        return (self.inner.log_prob(torch.atanh(clipped)) - jacobian).sum(-1)

    def entropy(self):
        constant = torch.tensor(0.5 + 0.5 * math.log(2 * math.pi))
        return (constant + self.inner.scale.log()).sum(-1)

    def unscale(self, actions):
        return self.low + (actions + 1) * 0.5 * (self.high - self.low)  # raises

    def to_environment(self, actions):
        return self.unscale(actions.detach().cpu()).numpy()


class StateDependentNoise(Distribution):
    def __init__(self, dim, features):
        super().__init__(dim)
        self.log_std = torch.zeros(features, dim)
        self.resample(1)

    def resample(self, batch):
        self.weights = Normal(torch.zeros_like(self.log_std), self.log_std.exp())
        self.matrix = self.weights.rsample((batch,))

    def proba_distribution(self, params, latent=None):
        variance = latent.pow(2) @ self.log_std.to(latent).exp().pow(2)
        self.inner = Normal(params, (variance + 1e-6).sqrt())
        self.latent = latent
        return self

    def actions(self, deterministic=False):
        if deterministic:
            return self.mode()
        noise = torch.bmm(self.latent[:, None], self.matrix.expand(len(self.latent), -1, -1))  # raises
        return self.mode() + noise.squeeze(1)


def discounted(rewards, dones, gamma=0.9):
    running, out = torch.zeros(rewards.size(1)), []
    for reward, done in zip(rewards.flip(0), dones.flip(0)):
        running = reward + gamma * running.to(reward.device) * (1 - done)
        out.insert(0, running)
    return torch.stack(out)


def gae(values, rewards, dones, last, gamma=0.99, lam=0.95):
    following = torch.cat([values[1:], last[None]])
    delta = rewards + gamma * following * (1 - dones) - values
    advantage, result = 0, torch.zeros(values.shape)
    for step in reversed(range(len(values))):
        advantage = delta[step] + gamma * lam * (1 - dones[step]) * advantage
        result[step] = advantage
    return result, result + values  # raises


def vtrace(behaviour, target, values, rewards, bootstrap, gamma=0.99, clip=torch.tensor(1.0)):
    rho = torch.minimum((target - behaviour).exp(), clip)
    following = torch.cat([values[1:], bootstrap[None]])
    delta = rho * (rewards + gamma * following - values)
    corrections, acc = [], values.new_zeros(values.shape[1:])
    for step in range(len(values) - 1, -1, -1):
        acc = delta[step] + gamma * rho[step] * acc
        corrections.append(acc)
    return values + torch.stack(corrections[::-1])


class NStep:
    """N step targets with discounts of every lag."""

    def __init__(self, n, gamma=0.99):
        self.n = n
        self.discounts = gamma ** torch.arange(n, dtype=torch.float32)

    def windows(self, rewards):
        padded = F.pad(rewards, (0, self.n - 1))
        return padded.unfold(-1, self.n, 1)

    def targets(self, rewards):
        return torch.einsum("btn,n->bt", self.windows(rewards), self.discounts)  # raises

    def bootstrap(self, values):
        index = torch.arange(values.size(1)).add(self.n).clamp(max=values.size(1) - 1)
        return values[:, index] * float(self.discounts[-1])


class RunningMeanStd:
    def __init__(self, shape=(), epsilon=1e-4):
        self.mean, self.var = torch.zeros(shape), torch.ones(shape)
        self.count = torch.tensor(epsilon)

    def update(self, x):
        mean, var, count = x.mean(0), x.var(0, unbiased=False), x.shape[0]
        delta = mean - self.mean
        total = self.count + count
        m2 = self.var * self.count + var * count + delta ** 2 * self.count * count / total
        self.mean, self.var, self.count = self.mean + delta * count / total, m2 / total, total


class ObservationNormalizer(nn.Module):
    def __init__(self, shape, clip=5.0, kind="buffers"):
        super().__init__()
        self.clip, self.kind = clip, kind
        if kind == "buffers":
            self.register_buffer("mean", torch.zeros(shape))
            self.register_buffer("var", torch.ones(shape))
        else:
            self.stats = RunningMeanStd(shape)

    def observe(self, x):
        if self.kind == "buffers":
            self.mean.lerp_(x.mean(0), 0.1)
            self.var.lerp_(x.var(0), 0.1)
        else:
            self.stats.update(x.cpu())

    def forward(self, x):
        mean, var = (self.mean, self.var) if self.kind == "buffers" else (self.stats.mean, self.stats.var)
        return ((x - mean) / (var + 1e-8).sqrt()).clamp(-self.clip, self.clip)  # raises


class RewardScaler:
    def __init__(self, envs, gamma=0.99):
        self.returns, self.gamma = None, gamma
        self.envs, self.stats = envs, RunningMeanStd(())

    def __call__(self, rewards):
        if self.returns is None:
            self.returns = rewards.new_zeros(self.envs)
        self.returns = self.returns * self.gamma + rewards
        self.stats.update(self.returns)
        return rewards / (self.stats.var + 1e-8).sqrt()


class RolloutStorage:
    fields: Tuple[str, ...] = ("obs", "actions", "rewards", "dones")

    def __init__(self, steps, envs, dim, device="cpu"):
        self.obs = torch.zeros(steps, envs, dim)
        self.actions = torch.zeros(steps, envs, dtype=torch.long)
        self.rewards, self.dones = torch.zeros(steps, envs), torch.zeros(steps, envs)
        self.steps, self.step = steps, 0
        self.to(device)

    def to(self, device):
        for name in self.fields:
            setattr(self, name, getattr(self, name).to(device))
        return self

    def insert(self, **values):
        for name, value in values.items():
            getattr(self, name)[self.step].copy_(value)
        self.step = (self.step + 1) % self.steps

    def batches(self, size):
        order = torch.randperm(self.rewards.numel())
        flat = Batch(*(getattr(self, name).flatten(0, 1) for name in self.fields))
        for index in order.split(size):
            yield Batch(*(each[index] for each in flat))

    def whiten(self, advantages):
        valid = 1 - self.dones
        mean = (advantages * valid).sum() / valid.sum()  # raises
        return (advantages - mean) / (advantages.std() + 1e-8)


class SumTree:
    def __init__(self, capacity):
        self.capacity = capacity
        self.tree = torch.zeros(2 * capacity)

    def set(self, index, value):
        node = index + self.capacity
        self.tree[node] = value
        node = node // 2
        while int(node.max()) >= 1:
            self.tree[node] = self.tree[2 * node] + self.tree[2 * node + 1]
            node = node // 2
        return self.tree[1]

    def leaves(self, index):
        return self.tree[index + self.capacity]

    def find(self, mass):
        totals = self.tree[self.capacity:].cumsum(0)
        return torch.searchsorted(totals, mass).clamp(max=self.capacity - 1)


class PrioritizedReplay:
    def __init__(self, capacity, alpha=0.6):
        self.items, self.alpha = deque(maxlen=capacity), alpha
        self.tree = SumTree(capacity)

    def add(self, batch: Batch):
        for row in zip(*batch):
            index = torch.tensor([len(self.items)])
            self.items.append(Batch(*row))
            self.tree.set(index, 1.0)

    def sample(self, count, device=None):
        mass = torch.rand(count) * self.tree.tree[1]
        index = self.tree.find(mass)
        picked = [self.items[i] for i in index.tolist()]
        batch = Batch(*(torch.stack(each) for each in zip(*picked)))
        weights = (len(self.items) * self.tree.leaves(index) + 1e-6).reciprocal()
        return (batch if device is None else batch.to(device)), weights / weights.max(), index

    def update(self, index, td):
        priorities = td.detach().abs().pow(self.alpha)
        return self.tree.set(index, priorities)

    def weighted_loss(self, td, weights):
        return (weights * td.pow(2)).mean()  # raises


class Encoder(nn.Module):
    def __init__(self, dim, width=8):
        super().__init__()
        self.linear = nn.Linear(dim, width)

    def forward(self, x):
        return torch.tanh(self.linear(x))


class QuantileCritic(nn.Module):
    def __init__(self, dim, actions=3, quantiles=4):
        super().__init__()
        self.encoder, self.actions = Encoder(dim), actions
        self.head = nn.Linear(8, actions * quantiles)
        self.taus = (torch.arange(quantiles) + 0.5) / quantiles

    def forward(self, obs):
        return self.head(self.encoder(obs)).reshape(len(obs), self.actions, -1)

    def best(self, obs):
        z = self(obs)
        return z[torch.arange(len(z)), z.mean(-1).argmax(-1)]

    def loss(self, obs, actions, target):
        z = self(obs)[torch.arange(len(obs), device=obs.device), actions]
        error = target[:, None] - z[..., None]
        huber = F.smooth_l1_loss(z[..., None].expand_as(error), target[:, None].expand_as(error), reduction="none")
        return ((self.taus[:, None] - (error.detach() < 0).float()).abs() * huber).mean()  # raises


class CategoricalCritic(nn.Module):
    """Distribution over a fixed support of returns."""

    def __init__(self, dim, atoms=5, low=-1.0, high=1.0):
        super().__init__()
        self.body = nn.Sequential(Encoder(dim), nn.Linear(8, atoms))
        self.register_buffer("support", torch.linspace(low, high, atoms))
        self.low, self.high, self.delta = low, high, (high - low) / (atoms - 1)

    def project(self, reward, done, prob, gamma=0.9):
        moved = (reward[:, None] + gamma * (1 - done[:, None]) * self.support).clamp(self.low, self.high)
        b = ((moved - self.low) / self.delta).clamp(0, prob.size(1) - 1)
        lower, upper = b.floor().long(), b.ceil().long()
        m = torch.zeros(prob.shape, device=prob.device)
        m.scatter_add_(1, lower, prob * (upper - b + (lower == upper)))
        return m.scatter_add_(1, upper, prob * (b - lower))

    def two_hot(self, value):
        position = torch.bucketize(value.clamp(self.low, self.high), self.support, right=True) - 1
        return F.one_hot(position.clamp(0, len(self.support) - 1), len(self.support)).float()

    def expected(self, obs):
        return self.body(obs).softmax(-1) @ self.support


class RecurrentPolicy(nn.Module):
    def __init__(self, dim, actions=3, width=8):
        super().__init__()
        self.cell, self.head = nn.GRUCell(dim, width), nn.Linear(width, actions)
        self.width, self.dist = width, MaskedCategorical(actions)

    def initial(self, batch):
        return torch.zeros(batch, self.width)

    def unroll(self, obs, dones, state=None):
        state = self.initial(obs.size(1)).type_as(obs) if state is None else state
        logits = []
        for x, done in zip(obs, dones):
            state = self.cell(x, state * (1 - done)[:, None])  # raises
            logits.append(self.head(state))
        return torch.stack(logits), state


def epsilon_greedy(q, epsilon, available=None):
    random = torch.randint(q.size(-1), (len(q),))
    explore = torch.rand(len(q)) < epsilon
    greedy = q.argmax(-1)
    if available is not None:
        greedy = torch.as_tensor(available)[greedy.cpu()].to(q.device)
    return torch.where(explore, random, greedy)  # raises


class Polyak:
    def __init__(self, online: nn.Module, target: nn.Module, tau=0.1):
        self.pairs: Dict[str, Tuple] = {name: (mine, theirs) for (name, mine), theirs in
                                        zip(target.named_parameters(), online.parameters())}
        self.tau = torch.tensor(tau)

    @torch.no_grad()
    def step(self):
        for mine, theirs in self.pairs.values():
            mine.copy_(mine + self.tau * (theirs - mine))
