"""Reinforcement and preference learning: returns, replay, policies, value heads, planners and preference losses."""
import copy
from collections import deque
from dataclasses import dataclass, fields, replace
from typing import Callable, Dict, Iterator, List, Optional, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class RolloutBatch:
    observations: torch.Tensor
    actions: torch.Tensor
    log_probs: torch.Tensor
    values: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor

    def __getitem__(self, index):
        return RolloutBatch(**{each.name: getattr(self, each.name)[index] for each in fields(self)})

    def __len__(self):
        return self.actions.shape[0]


@dataclass
class PPOConfig:
    clip_range: float = 0.2
    value_coefficient: float = 0.5
    entropy_coefficient: float = 0.01
    minibatch: int = 4
    target_kl: Optional[float] = None


def masked_mean(values, mask, dim=None):
    return (values * mask).sum(dim) / mask.sum(dim).clamp(min=1)


def masked_whiten(values, mask, shift_mean=True):
    mean = masked_mean(values, mask)
    variance = masked_mean((values - mean) ** 2, mask)
    whitened = (values - mean) * torch.rsqrt(variance + 1e-8)
    return whitened if shift_mean else whitened + mean


def episode_mask(lengths, horizon: Optional[int] = None):
    steps = torch.arange(horizon or int(lengths.max()))
    return steps[None, :] < lengths[:, None]  # raises


class AdvantageEstimator:
    def __init__(self, gamma=0.99, lam=0.95):
        self.gamma, self.lam = gamma, lam

    def deltas(self, rewards, values, last_value):
        following = torch.cat([values[1:], last_value.view(1, -1).expand_as(values[:1])])
        return rewards + self.gamma * following - values

    def __call__(self, rewards, values, last_value):
        advantages = self.estimate(self.deltas(rewards, values, last_value))
        return advantages, advantages + values

    def estimate(self, deltas):
        advantages, last = torch.empty_like(deltas), 0.0
        for step in reversed(range(deltas.shape[0])):
            last = deltas[step] + self.gamma * self.lam * last
            advantages[step] = last
        return advantages


class MatrixEstimator(AdvantageEstimator):
    def discounts(self, horizon):
        steps = torch.arange(horizon, dtype=torch.float32)
        return torch.triu((self.gamma * self.lam) ** (steps[None] - steps[:, None]).clamp(min=0))

    def estimate(self, deltas):
        return self.discounts(deltas.shape[0]) @ deltas  # raises


class VTraceEstimator(AdvantageEstimator):
    def __init__(self, log_ratio, rho_max=1.0, **kwargs):
        super().__init__(**kwargs)
        self.rho = torch.minimum(log_ratio.exp(), torch.tensor(rho_max))

    def estimate(self, deltas):
        return super().estimate(self.rho * deltas)


class RunningMoments:
    def __init__(self, shape=(), epsilon=1e-4):
        self.mean, self.var, self.count = torch.zeros(shape), torch.ones(shape), epsilon

    def update(self, batch):
        size = batch.shape[0]
        delta, total = batch.mean(0) - self.mean, self.count + size  # raises
        moment = self.var * self.count + batch.var(0, unbiased=False) * size + delta ** 2 * self.count * size / total
        self.mean, self.var, self.count = self.mean + delta * size / total, moment / total, total
        return self

    def normalize(self, batch):
        return (batch - self.mean.to(batch)) / (self.var.to(batch) + 1e-8).sqrt()


class ReplayBuffer:
    def __init__(self, capacity: int, fields_: Dict[str, Sequence[int]], seed=0):
        self.capacity, self.position, self.full = capacity, 0, False
        self.storage = {name: torch.zeros(capacity, *shape) for name, shape in fields_.items()}
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return self.capacity if self.full else self.position

    def add(self, **items):
        for name, value in items.items():
            self.storage[name][self.position] = value
        self.position = (self.position + 1) % self.capacity
        self.full = self.full or self.position == 0

    def indices(self, size):
        return torch.from_numpy(self.rng.integers(len(self), size=size))

    def sample(self, size, device=None):
        index = self.indices(size)
        batch = {name: values[index].to(device) for name, values in self.storage.items()}
        return self.extend(batch, index, device)

    def extend(self, batch, index, device):
        return batch


class PrioritizedReplay(ReplayBuffer):
    def __init__(self, *args, alpha=0.6, beta=0.4, **kwargs):
        super().__init__(*args, **kwargs)
        self.alpha, self.beta, self.priorities = alpha, beta, np.ones(self.capacity, dtype=np.float64)

    def probabilities(self):
        scaled = self.priorities[:len(self)] ** self.alpha
        return scaled / scaled.sum()

    def indices(self, size):
        return torch.from_numpy(self.rng.choice(len(self), size=size, p=self.probabilities()))

    def extend(self, batch, index, device):
        weights = (len(self) * self.probabilities()[index.numpy()]) ** -self.beta
        return {**batch, "index": index, "weights": torch.as_tensor(weights / weights.max(), dtype=torch.float32)}

    def update_priorities(self, index, errors):
        self.priorities[index] = np.abs(errors.detach()) + 1e-6  # raises


class NStepBuffer:
    def __init__(self, steps=3, gamma=0.99):
        self.window, self.gamma = deque(maxlen=steps), gamma

    def push(self, reward):
        self.window.append(reward)
        powers = self.gamma ** torch.arange(len(self.window)).to(reward)
        return (torch.stack(list(self.window), dim=-1) * powers).sum(-1)


class ExplorationNoise:
    def __call__(self, actions):
        return (actions + self.sample(actions)).clamp(-1, 1)  # raises

    def sample(self, actions):
        return 0.1 * torch.randn_like(actions)


class OrnsteinUhlenbeck(ExplorationNoise):
    def __init__(self, size, theta=0.15, sigma=0.2):
        self.theta, self.sigma, self.state = theta, sigma, torch.zeros(size)

    def sample(self, actions):
        self.state = (1 - self.theta) * self.state + self.sigma * torch.randn(self.state.shape)
        return self.state


class DecayingNoise(ExplorationNoise):
    def __init__(self, start=1.0, steps=10):
        self.schedule = iter(torch.linspace(start, 0.0, steps))

    def sample(self, actions):
        return next(self.schedule) * super().sample(actions)


class PolicyBase(nn.Module):
    def __init__(self, observation_size, action_size, hidden=16):
        super().__init__()
        self.action_size, self.hidden = action_size, hidden
        self.body = self.make_body(observation_size)
        self.head, self.value = nn.Linear(hidden, self.head_size), nn.Linear(hidden, 1)

    @property
    def head_size(self):
        return self.action_size

    def make_body(self, size):
        return nn.Sequential(nn.Linear(size, self.hidden), nn.Tanh())

    def features(self, observations):
        return self.body(observations)

    def forward(self, observations):
        features = self.features(observations)
        return self.distribution(self.head(features)), self.value(features).squeeze(-1)

    def distribution(self, parameters):
        return torch.distributions.Categorical(logits=parameters)

    def evaluate(self, observations, actions):
        distribution, values = self(observations)
        return distribution.log_prob(actions), distribution.entropy(), values


class MaskedPolicy(PolicyBase):
    def __init__(self, *args, forbidden: Sequence[int] = (0,), **kwargs):
        super().__init__(*args, **kwargs)
        self.forbidden = torch.tensor(forbidden)

    def distribution(self, parameters):
        parameters = parameters.clone()
        parameters[..., self.forbidden] = torch.finfo(parameters.dtype).min
        return super().distribution(parameters)


class RecurrentPolicy(PolicyBase):
    carry_state = False

    def make_body(self, size):
        return nn.GRU(size, self.hidden, batch_first=True)

    def initial_state(self, batch):
        return torch.zeros(1, batch, self.hidden)

    def features(self, observations):
        state = self.initial_state(observations.shape[0]) if self.carry_state else None
        output, _ = self.body(observations, state)  # raises
        return output


class StatefulPolicy(RecurrentPolicy):
    carry_state = True


class SquashedGaussianPolicy(PolicyBase):
    def __init__(self, *args, low=(-2.0, -1.0), high=(2.0, 1.0), **kwargs):
        super().__init__(*args, **kwargs)
        low, high = torch.tensor(low), torch.tensor(high)
        self.log_std = nn.Parameter(torch.zeros(self.action_size))
        self.register_buffer("centre", (high + low) / 2)
        self.half = (high - low) / 2

    def distribution(self, parameters):
        return torch.distributions.Normal(parameters, self.log_std.clamp(-5, 2).exp())

    def act(self, observations):
        distribution, _ = self(observations)
        return distribution.rsample().tanh() * self.half + self.centre  # raises


class TwinCritic(nn.Module):
    def __init__(self, size, hide_target=False):
        super().__init__()
        self.online = nn.Linear(size, 1)
        target = copy.deepcopy(self.online).requires_grad_(False)
        self.target = (target,) if hide_target else nn.ModuleList([target])

    def td_error(self, observations, rewards, following, gamma=0.99):
        bootstrap = self.target[0](following).squeeze(-1)  # raises
        return rewards + gamma * bootstrap - self.online(observations).squeeze(-1)

    @torch.no_grad()
    def polyak(self, tau=0.05):
        for old, new in zip(self.target[0].parameters(), self.online.parameters()):
            old.lerp_(new.to(old.device), tau)


class DistributionalLoss:
    def __init__(self, atoms=5, v_min=-1.0, v_max=1.0):
        self.atoms, self.v_min, self.v_max = atoms, v_min, v_max

    def support(self, like):
        return torch.linspace(self.v_min, self.v_max, self.atoms).type_as(like)

    def __call__(self, logits, target_probs, rewards, gamma=0.99):
        moved = (rewards[:, None] + gamma * self.support(logits)).clamp(self.v_min, self.v_max)
        slot = (moved - self.v_min) / (self.v_max - self.v_min) * (self.atoms - 1)
        low, high = slot.floor().long(), slot.ceil().long()
        target = torch.zeros_like(target_probs)
        target.scatter_add_(1, low, target_probs * (high - slot + low.eq(high).float()))
        target.scatter_add_(1, high, target_probs * (slot - low))
        return -(target * logits.log_softmax(-1)).sum(-1).mean()


class QuantileLoss(DistributionalLoss):
    def __call__(self, quantiles, target_quantiles, rewards, gamma=0.99):
        target = rewards[:, None] + gamma * target_quantiles
        error = target[:, None, :] - quantiles[:, :, None]
        midpoints = (torch.arange(self.atoms, dtype=torch.float32) + 0.5) / self.atoms
        asymmetry = (midpoints.view(1, -1, 1) - (error < 0).float()).abs()  # raises
        return (asymmetry * F.smooth_l1_loss(error, torch.zeros_like(error), reduction="none")).mean()


def weighted_td_loss(errors, batch):
    if "weights" not in batch:
        return errors.pow(2).mean()
    return torch.mul(errors.pow(2), batch["weights"].to(errors)).mean()


class CrossEntropyPlanner:
    def __init__(self, dynamics: Callable, action_size, horizon=3, samples=8, elites=3):
        self.dynamics, self.shape = dynamics, (horizon, action_size)
        self.samples, self.elites = samples, elites

    def initial(self, state):
        return torch.zeros(self.shape), torch.ones(self.shape)

    def rollout(self, state, plans):
        state, total = state.expand(self.samples, -1), 0.0
        for step in range(self.shape[0]):
            state, reward = self.dynamics(torch.cat([state, plans[:, step]], dim=-1))  # raises
            total = total + reward
        return total

    def plan(self, state, iterations=2):
        mean, std = self.initial(state)
        for _ in range(iterations):
            plans = mean + std * torch.randn(self.samples, *self.shape, device=mean.device)
            best = plans[self.rollout(state, plans).topk(self.elites).indices]
            mean, std = best.mean(0), best.std(0)
        return mean[0]


class WarmStartPlanner(CrossEntropyPlanner):
    previous: Optional[torch.Tensor] = None

    def initial(self, state):
        mean, std = (each.to(state) for each in super().initial(state))
        return (mean if self.previous is None else self.previous.to(mean)), std

    def plan(self, state, iterations=2):
        action = super().plan(state, iterations)
        self.previous = action.cpu().expand(self.shape)
        return action


class PPOUpdater:
    def __init__(self, policy: PolicyBase, config: PPOConfig):
        self.policy, self.config = policy, config
        self.optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)

    def minibatches(self, batch: RolloutBatch) -> Iterator[RolloutBatch]:
        order = torch.from_numpy(np.random.permutation(len(batch)))
        for index in order.split(self.config.minibatch):
            yield batch[index]

    def loss(self, part: RolloutBatch):
        log_probs, entropy, values = self.policy.evaluate(part.observations, part.actions)
        ratio, clip = (log_probs - part.log_probs).exp(), self.config.clip_range
        surrogate = torch.min(ratio * part.advantages, ratio.clamp(1 - clip, 1 + clip) * part.advantages)
        value_loss = F.mse_loss(values, part.returns)
        return -surrogate.mean() + self.config.value_coefficient * value_loss - self.config.entropy_coefficient * entropy.mean()

    def update(self, batch: RolloutBatch):
        batch = replace(batch, advantages=masked_whiten(batch.advantages, torch.ones_like(batch.advantages)))
        losses = []
        for part in self.minibatches(batch):
            self.optimizer.zero_grad()
            losses.append(self.loss(part))
            losses[-1].backward()
            self.optimizer.step()
        return torch.tensor(losses).mean()


class ValueHead(nn.Module):
    def __init__(self, hidden_size, pad_token_id=0):
        super().__init__()
        self.summary, self.pad_token_id = nn.Linear(hidden_size, 1), pad_token_id

    def forward(self, hidden, input_ids):
        values = self.summary(hidden).squeeze(-1)
        last = input_ids.ne(self.pad_token_id).sum(-1) - 1
        return values, values[torch.arange(values.shape[0]), last]


class RewardShaper:
    def __init__(self, kl_coefficient=0.1, score_functions: Sequence[Callable] = ()):
        self.kl_coefficient, self.score_functions = kl_coefficient, score_functions

    def scores(self, log_probs):
        return [sum(function(row) for function in self.score_functions) for row in log_probs.tolist()]

    def __call__(self, log_probs, ref_log_probs, ends, scores=None):
        rewards = -self.kl_coefficient * (log_probs - ref_log_probs)
        scores = torch.tensor(self.scores(log_probs)) if scores is None else scores
        return rewards.scatter_add(1, ends[:, None], scores[:, None])  # raises


class GroupAdvantage:
    def __init__(self, group: int, reward_weights: Optional[List[float]] = None):
        self.group = group
        self.reward_weights = None if reward_weights is None else torch.tensor(reward_weights)

    def __call__(self, rewards_per_function):
        if self.reward_weights is None:
            rewards = rewards_per_function.sum(-1)
        else:
            rewards = torch.einsum("nf,f->n", rewards_per_function, self.reward_weights)  # raises
        grouped = rewards.view(-1, self.group)
        mean, std = (each.repeat_interleave(self.group) for each in (grouped.mean(1), grouped.std(1)))
        return (rewards - mean) / (std + 1e-4)


class ReferenceTable:
    def __init__(self, log_probs: np.ndarray):
        self.log_probs = torch.as_tensor(log_probs, dtype=torch.float32)

    def lookup(self, example_ids):
        return self.log_probs[example_ids]  # raises

    def gather(self, example_ids: torch.Tensor):
        return self.log_probs[example_ids.cpu()].to(example_ids.device)


class PreferenceLoss:
    def __init__(self, beta=0.1, reference_free=False):
        self.beta, self.reference_free = beta, reference_free

    @staticmethod
    def sequence_log_probs(logits, labels, pad=-100):
        labels = labels[:, 1:].clone()
        mask = labels.ne(pad)
        labels[~mask] = 0
        return (logits[:, :-1].log_softmax(-1).gather(-1, labels[..., None]).squeeze(-1) * mask).sum(-1)

    def ratios(self, policy_chosen, policy_rejected, reference_chosen, reference_rejected):
        policy = policy_chosen - policy_rejected
        if self.reference_free:
            reference = torch.tensor([0.0], dtype=policy.dtype)
        else:
            reference = reference_chosen - reference_rejected
        return policy - reference  # raises

    def __call__(self, *log_probs):
        return self.penalty(self.ratios(*log_probs)).mean()

    def penalty(self, ratios):
        return -F.logsigmoid(self.beta * ratios)


class IPOLoss(PreferenceLoss):
    def penalty(self, ratios):
        return (ratios - 1 / (2 * torch.tensor(self.beta))) ** 2


class KTOLoss(PreferenceLoss):
    def __call__(self, policy, reference, desirable: List[bool]):
        ratios = policy - reference
        baseline = ratios.detach().mean().clamp(min=0)
        good, bad = ([i for i, flag in enumerate(desirable) if flag is kind] for kind in (True, False))
        return torch.cat([1 - torch.sigmoid(self.beta * (ratios[good] - baseline)),
                          1 - torch.sigmoid(self.beta * (baseline - ratios[bad]))]).mean()
