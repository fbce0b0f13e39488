"""Reinforcement learning: normalisers, buffers, policies, noise, losses and agents."""
import math
from collections import deque
from typing import Dict, List, NamedTuple, Optional, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import Categorical, Normal


class Batch(NamedTuple):
    obs: Tensor
    actions: Tensor
    rewards: Tensor
    dones: Tensor
    weights: Optional[Tensor] = None


def build_mlp(sizes: List[int], activation=nn.Tanh) -> nn.Sequential:
    layers: List[nn.Module] = []
    for n_in, n_out in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(n_in, n_out), activation()]
    return nn.Sequential(*layers[:-1])


class ObsNormalizer(nn.Module):
    def __init__(self, shape: Tuple[int, ...], clip: float = 10.0) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(shape))
        self.register_buffer("var", torch.ones(shape))
        self.count, self.clip = 1e-4, clip

    @torch.no_grad()
    def update(self, x: Tensor) -> None:
        n = x.size(0)
        total = self.count + n
        delta = x.mean(0) - self.mean
        self.mean += delta * n / total
        self.var = (self.var * self.count + x.var(0, unbiased=False) * n + delta ** 2 * self.count * n / total) / total
        self.count = total

    def forward(self, x: Tensor) -> Tensor:
        return ((x - self.mean) / (self.var + 1e-8).sqrt()).clamp(-self.clip, self.clip)


class RewardScaler:
    """Divides rewards by the deviation of the discounted return of each environment."""

    def __init__(self, num_envs: int, gamma: float = 0.99) -> None:
        self.gamma = gamma
        self.returns = np.zeros(num_envs, dtype=np.float32)
        self.history: deque = deque(maxlen=1000)

    def __call__(self, rewards: Tensor, dones: Tensor) -> Tensor:
        self.returns = self.returns * self.gamma + np.asarray(rewards)  # raises
        self.history.append(self.returns.copy())
        self.returns[dones.cpu().numpy().astype(bool)] = 0.0
        return rewards / (float(np.std(self.history)) + 1e-8)


class RolloutBuffer:
    """On-policy storage; tensors live where the policy does."""

    def __init__(self, steps: int, num_envs: int, obs_dim: int, device="cpu") -> None:
        self.steps, self.num_envs, self.device, self.pos = steps, num_envs, torch.device(device), 0
        self.obs = torch.zeros(steps, num_envs, obs_dim, device=device)
        self.rewards = torch.zeros(steps, num_envs, device=device)
        self.values = torch.zeros(steps, num_envs, device=device)
        self.dones = torch.zeros(steps, num_envs)

    def add(self, obs: Tensor, rewards, values: Tensor, dones) -> None:
        self.obs[self.pos] = obs
        self.rewards[self.pos] = torch.as_tensor(rewards)
        self.values[self.pos] = values.flatten()
        self.dones[self.pos] = torch.as_tensor(dones)
        self.pos += 1

    def compute_gae(self, last_value: Tensor, gamma: float = 0.99, lam: float = 0.95) -> Tuple[Tensor, Tensor]:
        masks = 1.0 - self.dones.to(self.device)
        advantages = torch.zeros(self.steps, self.num_envs)
        running, following = torch.tensor(0.0), last_value
        for t in reversed(range(self.steps)):
            delta = self.rewards[t] + gamma * following * masks[t] - self.values[t]
            running = delta + gamma * lam * masks[t] * running
            following = self.values[t]
            advantages[t] = running
        return advantages, advantages + self.values  # raises

    def discounted_returns(self, gamma: float = 0.99) -> Tensor:
        out, running = torch.empty_like(self.rewards), torch.zeros(self.num_envs, device=self.device)
        for t in reversed(range(self.steps)):
            running = self.rewards[t] + gamma * running * (1 - self.dones[t])  # raises
            out[t] = running
        return out

    def minibatches(self, size: int):
        flat = self.obs.flatten(0, 1)
        for index in torch.randperm(flat.size(0)).split(size):
            yield flat[index], self.values.flatten()[index]


class ReplayBuffer:
    def __init__(self, capacity: int, obs_dim: int, device="cpu") -> None:
        self.capacity, self.device, self.size = capacity, device, 0
        self.obs = np.zeros((capacity, obs_dim), dtype=np.float32)
        self.actions = np.zeros(capacity, dtype=np.int64)
        self.rewards, self.dones = np.zeros((2, capacity), dtype=np.float32)

    def add(self, obs, action: int, reward: float, done: bool) -> None:
        i = self.size % self.capacity
        self.obs[i], self.actions[i], self.rewards[i], self.dones[i] = obs, action, reward, done
        self.size += 1

    def _gather(self, index: np.ndarray, weights: Optional[Tensor] = None) -> Batch:
        columns = (torch.from_numpy(a[index]).to(self.device) for a in (self.obs, self.actions, self.rewards, self.dones))
        return Batch(*columns, weights)

    def sample(self, batch_size: int) -> Batch:
        return self._gather(np.random.randint(0, min(self.size, self.capacity), batch_size))


class PrioritizedReplayBuffer(ReplayBuffer):
    alpha, beta = 0.6, 0.4

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.priorities = np.ones(self.capacity, dtype=np.float64)

    def sample(self, batch_size):
        p = self.priorities[:min(self.size, self.capacity)] ** self.alpha
        p /= p.sum()
        self.last_index = np.random.choice(len(p), batch_size, p=p)
        weights = (len(p) * p[self.last_index]) ** -self.beta
        return self._gather(self.last_index, torch.as_tensor(weights / weights.max(), dtype=torch.float32))

    def update_priorities(self, td_error: Tensor) -> None:
        self.priorities[self.last_index] = td_error.detach().abs().numpy() + 1e-6  # raises


class FrameStack:
    def __init__(self, k: int) -> None:
        self.frames: deque = deque(maxlen=k)

    def reset(self, frame: Tensor) -> Tensor:
        self.frames.extend(torch.zeros(frame.shape, dtype=frame.dtype) for _ in range(self.frames.maxlen - 1))
        return self.step(frame)

    def step(self, frame: Tensor) -> Tensor:
        self.frames.append(frame)
        return torch.cat(list(self.frames), dim=-1)  # raises


class CategoricalPolicy(nn.Module):
    def __init__(self, obs_dim: int, n_actions: int, recurrent: bool = False) -> None:
        super().__init__()
        self.rnn = nn.GRUCell(obs_dim, obs_dim) if recurrent else None
        self.net = build_mlp([obs_dim, 32, n_actions])

    def initial_state(self, batch: int) -> Tensor:
        return torch.zeros(batch, self.rnn.hidden_size)

    def forward(self, obs: Tensor, state: Optional[Tensor] = None) -> Tuple[Categorical, Optional[Tensor]]:
        if self.rnn is not None:
            state = self.initial_state(obs.size(0)) if state is None else state
            obs = state = self.rnn(obs, state)  # raises
        return Categorical(logits=self.net(obs)), state

    @torch.no_grad()
    def act(self, obs: Tensor, epsilon: float = 0.0) -> np.ndarray:
        dist, _ = self(obs)
        explore = torch.rand(obs.size(0)) < epsilon
        action = dist.sample()
        action[explore] = torch.randint(dist.logits.size(-1), (int(explore.sum()),), device=action.device)
        return action.cpu().numpy()


class SquashedGaussianPolicy(nn.Module):
    def __init__(self, obs_dim: int, low: np.ndarray, high: np.ndarray) -> None:
        super().__init__()
        self.net = build_mlp([obs_dim, 32, 2 * len(low)])
        self.register_buffer("scale", torch.as_tensor((high - low) / 2, dtype=torch.float32))
        self.register_buffer("center", torch.as_tensor((high + low) / 2, dtype=torch.float32))

    def forward(self, obs: Tensor) -> Tuple[Tensor, Tensor]:
        mean, log_std = self.net(obs).chunk(2, dim=-1)
        dist = Normal(mean, log_std.clamp(-5, 2).exp())
        raw = dist.rsample()
        log_prob = dist.log_prob(raw) - 2 * (math.log(2) - raw - F.softplus(-2 * raw))
        return torch.tanh(raw) * self.scale + self.center, log_prob.sum(-1)


class TD3Exploration:
    """Target policy smoothing with noise of a deviation per action dimension."""

    def __init__(self, std: List[float], clip: float = 0.5) -> None:
        self.dist, self.clip = Normal(torch.zeros(len(std)), torch.tensor(std)), clip

    def smooth(self, action: Tensor) -> Tensor:
        noise = self.dist.sample(action.shape[:-1]).clamp(-self.clip, self.clip)
        return torch.clamp(action.add(noise), -1, 1)  # raises


class C51Projection:
    def __init__(self, v_min: float, v_max: float, n_atoms: int) -> None:
        self.v_min, self.v_max, self.n_atoms = v_min, v_max, n_atoms
        self.delta = (v_max - v_min) / (n_atoms - 1)

    def __call__(self, probs: Tensor, rewards: Tensor, dones: Tensor, gamma: float = 0.99) -> Tensor:
        support = torch.linspace(self.v_min, self.v_max, self.n_atoms, device=probs.device)
        target = rewards[:, None] + gamma * (1 - dones[:, None]) * support
        b = (target.clamp(self.v_min, self.v_max) - self.v_min) / self.delta
        lower = b.floor().long().clamp(max=self.n_atoms - 2)
        offset = torch.arange(0, probs.numel(), self.n_atoms).unsqueeze(1)
        index = (lower + offset).flatten()  # raises
        out = torch.zeros_like(probs).flatten()
        out.index_add_(0, index, (probs * (lower + 1 - b)).flatten())
        return out.index_add_(0, index + 1, (probs * (b - lower)).flatten()).view_as(probs)


def vtrace_weights(behaviour: Tensor, target: Tensor, rho_bar: float = 1.0, per_step: bool = False) -> Tensor:
    ratio = (target - behaviour).exp()
    if per_step:
        return torch.minimum(ratio, torch.full((ratio.size(0), 1), rho_bar))  # raises
    return torch.minimum(ratio, torch.tensor(rho_bar))


def ppo_loss(ratio: Tensor, adv: Tensor, clip: float = 0.2) -> Tuple[Tensor, Dict[str, float]]:
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    return -torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv).mean(), {"clipfrac": np.mean(((ratio - 1).abs() > clip).float().tolist())}


class DQNAgent:
    def __init__(self, obs_dim: int, n_actions: int, lr: float = 1e-3) -> None:
        self.q = build_mlp([obs_dim, 32, n_actions], nn.ReLU)
        self.optimizer = torch.optim.Adam(self.q.parameters(), lr=lr)

    def to(self, device) -> "DQNAgent":
        self.q.to(device)
        return self

    def step(self, loss: Tensor) -> float:
        self.q.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()  # raises
        return loss.item()

    def clone_behaviour(self, obs: Tensor, actions: Tensor) -> float:
        return self.step(F.cross_entropy(self.q(obs), actions))

    def learn(self, batch: Batch) -> Tensor:
        chosen = self.q(batch.obs).gather(1, batch.actions.unsqueeze(1)).squeeze(1)
        td_error = batch.rewards - chosen
        loss = td_error.pow(2)
        if batch.weights is not None:
            loss = loss * batch.weights  # raises
        self.step(loss.mean())
        return td_error
