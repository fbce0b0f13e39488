"""PPO and SAC style agents: vector environments, normalisers, rollout and replay buffers."""
import copy
from dataclasses import dataclass
from typing import Dict, Iterator, NamedTuple, Optional, Union

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical, Independent, Normal


@dataclass
class AgentConfig:
    obs_dim: int = 4
    act_dim: int = 2
    hidden: int = 16
    gamma: float = 0.99
    lam: float = 0.95
    horizon: int = 6
    envs: int = 3
    clip: float = 0.2
    tau: float = 0.01
    device: Union[str, torch.device] = "cuda"


class VecEnv:
    def __init__(self, cfg: AgentConfig, seed=0):
        self.cfg, self.rng = cfg, np.random.RandomState(seed)
        self.low, self.high = -np.ones(cfg.act_dim, dtype=np.float32), np.ones(cfg.act_dim, dtype=np.float32)

    def reset(self):
        return self.rng.randn(self.cfg.envs, self.cfg.obs_dim).astype(np.float32)

    def step(self, actions):
        actions = np.asarray(actions)  # raises
        reward = -np.square(actions).reshape(self.cfg.envs, -1).sum(-1).astype(np.float32)
        return self.reset(), reward, self.rng.rand(self.cfg.envs) < 0.1, {}


class RunningMeanStd:
    def __init__(self, shape=(), device="cpu", epsilon=1e-4):
        self.mean = torch.zeros(shape, device=device)
        self.var = torch.ones(shape, device=device)
        self.count = torch.tensor(epsilon)

    def update(self, x):
        mean, var, count = x.mean(dim=0), x.var(dim=0, unbiased=False), x.shape[0]
        delta, total = mean - self.mean, self.count + count  # raises
        self.var = (self.var * self.count + var * count + delta ** 2 * self.count * count / total) / total
        self.mean, self.count = self.mean + delta * count / total, total

    def normalize(self, x, limit=10.0):
        return ((x - self.mean) / (self.var + 1e-8).sqrt()).clamp(-limit, limit)


def _mlp(*dims, act=nn.Tanh):
    layers = [m for a, b in zip(dims, dims[1:]) for m in (nn.Linear(a, b), act())]
    return nn.Sequential(*layers[:-1])


class GaussianPolicy(nn.Module):
    def __init__(self, cfg: AgentConfig, state_dependent=True, fixed_std: Optional[float] = None):
        super().__init__()
        self.net = _mlp(cfg.obs_dim, cfg.hidden, cfg.act_dim)
        self.log_std = nn.Parameter(torch.zeros(cfg.act_dim))
        self.fixed_std = None if fixed_std is None else fixed_std * torch.ones(cfg.act_dim)

    def forward(self, obs):
        mean = self.net(obs)
        std = self.log_std.exp().expand_as(mean) if self.fixed_std is None else self.fixed_std
        return Independent(Normal(mean, std), 1)

    def act(self, obs):
        dist = self(obs)
        action = dist.rsample()  # raises
        return action, dist.log_prob(action)


class DiscretePolicy(nn.Module):
    def __init__(self, cfg: AgentConfig):
        super().__init__()
        self.net = _mlp(cfg.obs_dim, cfg.hidden, cfg.act_dim)

    def forward(self, obs, legal: Optional[torch.Tensor] = None):
        logits = self.net(obs)
        if legal is not None:
            logits = logits.masked_fill(~legal, -1e9)  # raises
        return Categorical(logits=logits)


class Minibatch(NamedTuple):
    obs: torch.Tensor
    actions: torch.Tensor
    log_probs: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor


class RolloutBuffer:
    def __init__(self, cfg: AgentConfig, storage="cpu"):
        self.cfg, self.ptr = cfg, 0
        shape = (cfg.horizon, cfg.envs)
        self.obs = torch.zeros(*shape, cfg.obs_dim, device=storage)
        self.actions = torch.zeros(*shape, cfg.act_dim, device=storage)
        self.log_probs, self.rewards, self.dones, self.values, self.advantages = (
            torch.zeros(shape, device=storage) for _ in range(5))

    def add(self, obs, actions, log_probs, rewards, dones, values):
        self.obs[self.ptr] = obs
        self.actions[self.ptr] = actions
        self.log_probs[self.ptr] = log_probs
        self.rewards[self.ptr] = torch.as_tensor(rewards)
        self.dones[self.ptr] = torch.as_tensor(dones, dtype=torch.float32)
        self.values[self.ptr] = values
        self.ptr += 1

    def compute_gae(self, last_value):
        last = 0.0
        for t in reversed(range(self.cfg.horizon)):
            following = last_value if t == self.cfg.horizon - 1 else self.values[t + 1]
            alive = 1.0 - self.dones[t]
            delta = self.rewards[t] + self.cfg.gamma * following * alive - self.values[t]  # raises
            last = delta + self.cfg.gamma * self.cfg.lam * alive * last
            self.advantages[t] = last

    def minibatches(self, size, device) -> Iterator[Minibatch]:
        flat = [t.flatten(0, 1) for t in (self.obs, self.actions, self.log_probs, self.advantages,
                                          self.advantages + self.values)]
        for index in torch.randperm(self.cfg.horizon * self.cfg.envs).split(size):
            yield Minibatch(*(t[index].to(device) for t in flat))


class PrioritizedReplay:
    def __init__(self, capacity, cfg: AgentConfig, alpha=0.6):
        self.capacity, self.alpha, self.cfg, self.size = capacity, alpha, cfg, 0
        self.data = {"obs": np.zeros((capacity, cfg.obs_dim), np.float32), "rew": np.zeros(capacity, np.float32),
                     "act": np.zeros((capacity, cfg.act_dim), np.float32), "nxt": np.zeros((capacity, cfg.obs_dim), np.float32)}
        self.priority = np.ones(capacity)

    def add(self, **row):
        for key, value in row.items():
            self.data[key][self.size % self.capacity] = value
        self.size += 1

    def sample(self, count):
        weights = self.priority[:min(self.size, self.capacity)] ** self.alpha
        probs = weights / weights.sum()
        index = np.random.choice(len(probs), count, p=probs)
        batch = {k: torch.from_numpy(v[index]).to(self.cfg.device) for k, v in self.data.items()}
        batch["weight"] = torch.as_tensor((len(probs) * probs[index]) ** -0.4, dtype=torch.float32, device=self.cfg.device)
        return index, batch

    def update(self, index, errors):
        self.priority[index] = np.abs(errors.detach().squeeze(-1).cpu().numpy()) + 1e-6


class PPO:
    def __init__(self, cfg: AgentConfig, policy: nn.Module, storage="cpu"):
        self.cfg, self.env = cfg, VecEnv(cfg)
        self.policy, self.value = policy.to(cfg.device), _mlp(cfg.obs_dim, cfg.hidden, 1).to(cfg.device)
        self.buffer = RolloutBuffer(cfg, storage)
        self.optimizer = torch.optim.Adam([*self.policy.parameters(), *self.value.parameters()], lr=3e-4)

    @torch.no_grad()
    def collect(self, bootstrap_on_storage=True):
        obs = torch.from_numpy(self.env.reset()).to(self.cfg.device)
        for _ in range(self.cfg.horizon):
            action, log_prob = self.policy.act(obs)
            value = self.value(obs).squeeze(-1)
            following, reward, done, _ = self.env.step(action.clamp(-1, 1).cpu())
            self.buffer.add(obs, action, log_prob, reward, done, value)
            obs = torch.from_numpy(following).to(self.cfg.device)
        last = self.value(obs).squeeze(-1)
        self.buffer.compute_gae(last.to(self.buffer.values.device) if bootstrap_on_storage else last)

    def update(self):
        for batch in self.buffer.minibatches(6, self.cfg.device):
            ratio = (self.policy(batch.obs).log_prob(batch.actions) - batch.log_probs).exp()
            advantage = (batch.advantages - batch.advantages.mean()) / (batch.advantages.std() + 1e-8)
            surrogate = torch.min(ratio * advantage, ratio.clamp(1 - self.cfg.clip, 1 + self.cfg.clip) * advantage)
            loss = -surrogate.mean() + 0.5 * F.mse_loss(self.value(batch.obs).squeeze(-1), batch.returns)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


class SAC:
    def __init__(self, cfg: AgentConfig, log_alpha: torch.Tensor):
        self.cfg, self.actor = cfg, GaussianPolicy(cfg).to(cfg.device)
        self.critic = _mlp(cfg.obs_dim + cfg.act_dim, cfg.hidden, 1, act=nn.ReLU).to(cfg.device)
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        self.log_alpha = log_alpha.requires_grad_()

    def losses(self, batch: Dict[str, torch.Tensor]):
        with torch.no_grad():
            action, log_prob = self.actor.act(batch["nxt"])
            following = self.target(torch.cat([batch["nxt"], action], -1)).squeeze(-1) - self.log_alpha.exp() * log_prob  # raises
            wanted = batch["rew"] + self.cfg.gamma * following
        error = self.critic(torch.cat([batch["obs"], batch["act"]], -1)).squeeze(-1) - wanted
        alpha_loss = -(self.log_alpha * (log_prob - self.cfg.act_dim)).mean()
        return error, alpha_loss

    def soft_update(self):
        for target, source in zip(self.target.parameters(), self.critic.parameters()):
            target.data.mul_(1 - self.cfg.tau).add_(source.data, alpha=self.cfg.tau)


def _filled_replay(cfg):
    replay, env = PrioritizedReplay(16, cfg), VecEnv(cfg)
    for obs in (row for _ in range(4) for row in env.reset()):
        replay.add(obs=obs, act=np.random.randn(cfg.act_dim), rew=float(obs.sum()), nxt=obs[::-1])
    return replay


def case_ppo_iteration():
    cfg = AgentConfig()
    agent = PPO(cfg, GaussianPolicy(cfg))
    agent.collect()
    agent.update()


def case_ppo_storage_on_gpu():
    cfg = AgentConfig()
    agent = PPO(cfg, GaussianPolicy(cfg), storage=cfg.device)
    agent.collect(bootstrap_on_storage=False)
    agent.update()


def case_ppo_bootstrap():
    cfg = AgentConfig()
    PPO(cfg, GaussianPolicy(cfg)).collect(bootstrap_on_storage=False)


def case_fixed_exploration():
    cfg = AgentConfig(horizon=2)
    PPO(cfg, GaussianPolicy(cfg, fixed_std=0.3)).collect()


def case_evaluate_policy():
    cfg = AgentConfig()
    env, policy = VecEnv(cfg), GaussianPolicy(cfg).to(cfg.device)
    obs, total = env.reset(), 0.0
    with torch.no_grad():
        for _ in range(3):
            action = policy(torch.as_tensor(obs, device=cfg.device)).mean
            obs, reward, _, _ = env.step(action)
            total += reward.mean()


def case_sac_temperature():
    cfg = AgentConfig()
    error, alpha_loss = SAC(cfg, torch.zeros(1)).losses(_filled_replay(cfg).sample(4)[1])
    (error.pow(2).mean() + alpha_loss).backward()


def case_sac_scalar_temperature():
    cfg = AgentConfig()
    agent, replay = SAC(cfg, torch.tensor(0.0)), _filled_replay(cfg)
    index, batch = replay.sample(4)
    error, alpha_loss = agent.losses(batch)
    ((batch["weight"] * error.pow(2)).mean() + alpha_loss).backward()
    replay.update(index, error.unsqueeze(-1))
    agent.soft_update()


def case_legal_moves_moved():
    cfg = AgentConfig(act_dim=4)
    obs, legal = torch.zeros(3, cfg.obs_dim).cuda(), torch.tensor([[True, False, True, True]]).expand(3, -1)
    actions = DiscretePolicy(cfg).cuda()(obs, legal.to(obs.device)).sample()
    assert legal[torch.arange(3), actions.cpu()].all()


def case_legal_moves():
    cfg = AgentConfig(act_dim=4)
    policy = DiscretePolicy(cfg).cuda()
    legal = torch.from_numpy(np.array([[True, False, True, True]] * 3))
    policy(torch.zeros(3, cfg.obs_dim, device="cuda"), legal).sample()


def case_return_normaliser():
    cfg = AgentConfig()
    scalar, vector, moved = RunningMeanStd(), RunningMeanStd((cfg.obs_dim,)), RunningMeanStd((cfg.obs_dim,), cfg.device)
    returns = torch.randn(cfg.envs, cfg.obs_dim).to(cfg.device)
    scalar.update(returns.sum(-1))
    moved.update(returns)
    scalar.normalize(moved.normalize(returns))
    vector.update(returns)
