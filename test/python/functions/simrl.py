"""Vectorised simulation RL: environments living on an accelerator, rollout storage, PPO, SAC, normalisers."""
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical, Independent, Normal

Device = Union[str, torch.device]


class Box(NamedTuple):
    low: np.ndarray
    high: np.ndarray

    @property
    def shape(self):
        return self.low.shape

    def sample(self, n):
        return np.random.uniform(self.low, self.high, (n,) + self.shape).astype(np.float32)


@dataclass
class SimParams:
    dt: float = 0.05
    substeps: int = 2
    gravity: Tuple[float, float, float] = (0.0, 0.0, -9.81)
    device: str = "cuda:0"
    extras: Dict[str, Any] = field(default_factory=dict)


class VecTask(ABC):
    num_obs = 6
    num_actions = 2

    def __init__(self, params: SimParams, num_envs: int = 4):
        self.params = params
        self.num_envs = num_envs
        self.device = torch.device(params.device)
        self.extras: Dict[str, Any] = {}
        self.allocate_buffers()

    def allocate_buffers(self):
        self.obs_buf = torch.zeros((self.num_envs, self.num_obs), device=self.device)
        self.rew_buf = torch.zeros(self.num_envs, device=self.device)
        self.reset_buf = torch.ones(self.num_envs, device=self.device, dtype=torch.long)
        self.progress_buf = torch.zeros(self.num_envs, device=self.device, dtype=torch.long)

    @abstractmethod
    def reset_idx(self, env_ids):
        ...

    @abstractmethod
    def pre_physics_step(self, actions):
        ...

    @abstractmethod
    def post_physics_step(self):
        ...

    def reset(self):
        self.reset_idx(torch.arange(self.num_envs))
        self.post_physics_step()
        return self.obs_buf

    def step(self, actions):
        self.pre_physics_step(actions.to(self.device))
        self.progress_buf += 1
        self.post_physics_step()
        done = self.reset_buf.nonzero(as_tuple=False).flatten()
        if len(done) > 0:
            self.reset_idx(done)
        return self.obs_buf, self.rew_buf, self.reset_buf, self.extras


class PointMass(VecTask):
    def __init__(self, *args, **kw):
        super().__init__(*args, **kw)
        self.goal = torch.tensor([0.5, 0.5, 0.0], device=self.device)
        self.gravity = torch.tensor(self.params.gravity)
        self.spawn_low, self.spawn_high = -0.1, 0.1

    def allocate_buffers(self):
        super().allocate_buffers()
        self.pos = torch.zeros(self.num_envs, 3, device=self.device)
        self.vel = torch.zeros_like(self.pos)

    def reset_idx(self, env_ids):
        spread = torch.rand(len(env_ids), 3, device=self.device) * (self.spawn_high - self.spawn_low) + self.spawn_low
        self.pos[env_ids] = spread
        self.vel[env_ids] = 0.0
        self.progress_buf[env_ids] = 0
        self.reset_buf[env_ids] = 0

    def forces(self, actions):
        push = torch.zeros(self.num_envs, 3, device=self.device)
        push[:, :2] = actions
        return push

    def pre_physics_step(self, actions):
        force = self.forces(actions)
        for _ in range(self.params.substeps):
            self.vel += force * self.params.dt
            self.pos += self.vel * self.params.dt

    def post_physics_step(self):
        self.obs_buf[:, :3] = self.pos
        self.obs_buf[:, 3:] = self.vel
        dist = (self.pos - self.goal).norm(dim=-1)
        self.rew_buf = torch.exp(-dist)
        self.reset_buf = torch.where(self.progress_buf >= 2, torch.ones_like(self.reset_buf), self.reset_buf)


class FallingMass(PointMass):
    def forces(self, actions):
        return super().forces(actions) + self.gravity  # raises


class DomainRandomised(PointMass):
    """Each environment has its own mass, which drifts at every reset."""

    def allocate_buffers(self):
        super().allocate_buffers()
        self.mass = torch.ones(self.num_envs, 1)
        self.mass_range = self.params.extras.get("mass", (0.5, 2.0))

    def reset_idx(self, env_ids):
        super().reset_idx(env_ids)
        low, high = self.mass_range
        factor = low + (high - low) * torch.rand(len(env_ids), 1)
        self.mass[env_ids] = (self.mass[env_ids] * factor).clamp(0.1, 10.0)  # raises

    def forces(self, actions):
        return super().forces(actions) / self.mass.to(self.device)


class ObstacleMass(PointMass):
    def allocate_buffers(self):
        super().allocate_buffers()
        grid = torch.linspace(-1, 1, 3)
        centres = torch.cartesian_prod(grid, grid)
        self.obstacles = torch.nn.functional.pad(centres, (0, 1)).to(self.device)
        self.hits = np.zeros(self.num_envs, dtype=np.int64)

    def post_physics_step(self):
        super().post_physics_step()
        gap = torch.cdist(self.pos, self.obstacles).min(dim=1).values
        crashed = gap < 0.05
        self.rew_buf[crashed] -= 1.0
        self.hits += crashed.cpu().numpy()
        self.extras["crash_rate"] = crashed.float().mean()


def rollout(task, steps=3, policy=None):
    obs, total = task.reset(), 0.0
    for _ in range(steps):
        act = policy(obs) if policy else torch.rand(task.num_envs, task.num_actions) * 2 - 1
        obs, rew, done, info = task.step(act)
        total += rew.mean().item()
    return total


def case_point_mass_random_actions():
    return rollout(PointMass(SimParams()))


def case_falling_mass():
    return rollout(FallingMass(SimParams(substeps=1)), steps=1)


def case_randomised_masses_after_done():
    task = DomainRandomised(SimParams(extras={"mass": (0.8, 1.2)}), num_envs=3)
    return rollout(task, steps=3)


def case_obstacles_on_second_gpu():
    task = ObstacleMass(SimParams(device="cuda:1"))
    score = rollout(task, 2, policy=lambda o: -o[:, :2].detach())
    return score, task.hits.sum(), f"{task.extras['crash_rate']:.3f}"


# ------------------------------------------------------------------------------------------------ normalisation

class RunningMeanStd(nn.Module):
    def __init__(self, shape, eps=1e-4):
        super().__init__()
        self.register_buffer("mean", torch.zeros(shape))
        self.register_buffer("var", torch.ones(shape))
        self.count = eps

    def update(self, x):
        bm, bv, n = x.mean(0), x.var(0, unbiased=False), x.shape[0]
        delta, total = bm - self.mean, self.count + n
        self.var = (self.var * self.count + bv * n + delta ** 2 * self.count * n / total) / total
        self.mean = self.mean + delta * n / total
        self.count = total

    def forward(self, x):
        if self.training:
            self.update(x.detach())
        return ((x - self.mean) / (self.var + 1e-8).sqrt()).clamp(-5, 5)


class RewardScaler:
    def __init__(self, num_envs, gamma=0.99, device: Optional[Device] = None):
        self.returns = torch.zeros(num_envs, device=device)
        self.rms = RunningMeanStd(())
        self.gamma = gamma

    def __call__(self, reward, done):
        self.returns = self.returns * self.gamma + reward  # raises
        self.rms.update(self.returns.cpu())
        self.returns = self.returns * (1 - done.float())
        return reward / (self.rms.var + 1e-8).sqrt()


def case_reward_scaler_default_device():
    task = PointMass(SimParams())
    task.reset()
    scaler = RewardScaler(task.num_envs)
    _, rew, done, _ = task.step(torch.zeros(4, 2))
    return scaler(rew, done).mean().item()


def case_reward_scaler_on_task_device():
    task = PointMass(SimParams())
    task.reset()
    scaler = RewardScaler(task.num_envs, device=task.device)
    out = []
    for _ in range(2):
        _, rew, done, _ = task.step(torch.zeros(4, 2))
        out.append(scaler(rew, done))
    return torch.stack(out).sum().item()


# ------------------------------------------------------------------------------------------------ PPO

class ActorCritic(nn.Module):
    def __init__(self, num_obs, num_actions, init_std=1.0, normalise=True):
        super().__init__()
        self.norm = RunningMeanStd(num_obs) if normalise else nn.Identity()
        self.actor = nn.Linear(num_obs, num_actions)
        self.critic = nn.Linear(num_obs, 1)
        self.std = nn.Parameter(init_std * torch.ones(num_actions))
        self.distribution = None

    def act(self, obs):
        mean = self.actor(self.norm(obs))
        self.distribution = Independent(Normal(mean, mean * 0.0 + self.std), 1)
        return self.distribution.sample()

    def value(self, obs):
        return self.critic(self.norm(obs)).squeeze(-1)


class Storage:
    @dataclass
    class Transition:
        obs: Optional[torch.Tensor] = None
        actions: Optional[torch.Tensor] = None
        rewards: Optional[torch.Tensor] = None
        dones: Optional[torch.Tensor] = None
        values: Optional[torch.Tensor] = None
        log_probs: Optional[torch.Tensor] = None

        def clear(self):
            for f in fields(self):
                setattr(self, f.name, None)

    def __init__(self, steps, envs, num_obs, num_actions, device="cpu"):
        self.device = device
        self.obs = torch.zeros(steps, envs, num_obs, device=device)
        self.actions = torch.zeros(steps, envs, num_actions, device=device)
        self.rewards, self.dones, self.values, self.log_probs = (torch.zeros(steps, envs, device=device) for _ in range(4))
        self.returns = torch.zeros_like(self.values)
        self.ptr = 0

    def add(self, tr: "Storage.Transition"):
        for f in fields(tr):
            getattr(self, f.name)[self.ptr].copy_(getattr(tr, f.name))
        self.ptr += 1

    def compute_returns(self, last_values, gamma=0.99, lam=0.95):
        adv = 0
        for step in reversed(range(self.ptr)):
            nxt = last_values if step == self.ptr - 1 else self.values[step + 1]
            alive = 1.0 - self.dones[step]
            delta = self.rewards[step] + alive * gamma * nxt - self.values[step]  # raises
            adv = delta + alive * gamma * lam * adv
            self.returns[step] = adv + self.values[step]
        self.advantages = self.returns - self.values

    def minibatches(self, n=2) -> Iterator[Tuple[torch.Tensor, ...]]:
        total = self.ptr * self.obs.shape[1]
        flat = [t[: self.ptr].flatten(0, 1) for t in (self.obs, self.actions, self.returns, self.advantages, self.log_probs)]
        for idx in torch.randperm(total).chunk(n):
            yield tuple(t[idx] for t in flat)


class PPO:
    def __init__(self, task, steps=2, storage_device=None, last_on_storage=False):
        self.task, self.steps = task, steps
        self.policy = ActorCritic(task.num_obs, task.num_actions).to(task.device)
        self.storage = Storage(steps, task.num_envs, task.num_obs, task.num_actions, storage_device or task.device)
        self.opt = torch.optim.Adam(self.policy.parameters(), 1e-3)
        self.last_on_storage = last_on_storage

    @torch.no_grad()
    def collect(self):
        obs, tr = self.task.reset(), Storage.Transition()
        for _ in range(self.steps):
            tr.obs = obs.clone()
            tr.actions = self.policy.act(obs)
            tr.values = self.policy.value(obs)
            tr.log_probs = self.policy.distribution.log_prob(tr.actions)
            obs, tr.rewards, tr.dones, _ = self.task.step(tr.actions)
            self.storage.add(tr)
            tr.clear()
        last = self.policy.value(obs)
        if self.last_on_storage:
            last = last.to(self.storage.device)
        self.storage.compute_returns(last)

    def update(self):
        stats = []
        for obs, act, ret, adv, old in self.storage.minibatches():
            obs, act, ret, adv, old = (t.to(self.task.device) for t in (obs, act, ret, adv, old))
            self.policy.act(obs)
            ratio = (self.policy.distribution.log_prob(act) - old).exp()
            surrogate = -torch.min(adv * ratio, adv * ratio.clamp(0.8, 1.2)).mean()
            loss = surrogate + (self.policy.value(obs) - ret).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.policy.parameters(), 1.0)
            self.opt.step()
            stats.append(loss.item())
        return np.mean(stats)


def case_ppo_host_storage():
    ppo = PPO(PointMass(SimParams()), storage_device="cpu")
    ppo.collect()
    return ppo.update()


def case_ppo_host_storage_bootstrap_moved():
    ppo = PPO(PointMass(SimParams()), storage_device="cpu", last_on_storage=True)
    ppo.collect()
    return ppo.update()


# ------------------------------------------------------------------------------------------------ replay

class ReplayBuffer:
    def __init__(self, size, num_obs, num_actions):
        self.size, self.n = size, 0
        self.obs = np.zeros((size, num_obs), np.float32)
        self.act = np.zeros((size, num_actions), np.float32)
        self.rew = np.zeros(size, np.float32)

    def extend(self, obs, act, rew):
        for o, a, r in zip(obs, act, rew):
            i = self.n % self.size
            self.obs[i], self.act[i], self.rew[i] = o, a, r  # raises
            self.n += 1

    def sample(self, k, device):
        idx = np.random.randint(0, min(self.n, self.size), k)
        return tuple(torch.as_tensor(x[idx], device=device) for x in (self.obs, self.act, self.rew))


class PrioritisedBuffer(ReplayBuffer):
    def __init__(self, *a, alpha=0.6):
        super().__init__(*a)
        self.alpha = alpha
        self.prio = torch.zeros(self.size)

    def extend(self, obs, act, rew):
        start = self.n
        super().extend(*(x.detach().cpu().numpy() for x in (obs, act, rew)))
        self.prio[[i % self.size for i in range(start, self.n)]] = 1.0

    def sample(self, k, device):
        self.picked = torch.multinomial(self.prio ** self.alpha, k)
        rows = self.picked.numpy()
        return tuple(torch.from_numpy(x[rows]).to(device) for x in (self.obs, self.act, self.rew))

    def update_priorities(self, td: torch.Tensor):
        self.prio[self.picked] = td.abs() + 1e-3  # raises


class TwinQ(nn.Module):
    def __init__(self, num_obs, num_actions):
        super().__init__()
        self.q = nn.ModuleList(nn.Linear(num_obs + num_actions, 1) for _ in range(2))

    def forward(self, obs, act):
        x = torch.cat([obs, act], -1)
        return torch.min(*(q(x).squeeze(-1) for q in self.q))


def fill(buffer, task):
    obs = task.reset().clone()
    act = torch.rand(task.num_envs, 2, device=task.device)
    _, rew, _, _ = task.step(act)
    buffer.extend(obs, act, rew)
    return buffer


def critic_step(buffer, device):
    q = TwinQ(6, 2).to(device)
    obs, act, rew = buffer.sample(3, device)
    td = q(obs, act) - rew
    td.pow(2).mean().backward()
    return td.detach()


def case_numpy_replay_from_gpu_env():
    task = PointMass(SimParams())
    td = critic_step(fill(ReplayBuffer(8, 6, 2), task), task.device)
    return td.mean().item()


def case_prioritised_replay_priorities():
    task = PointMass(SimParams())
    buffer = fill(PrioritisedBuffer(8, 6, 2), task)
    buffer.update_priorities(critic_step(buffer, task.device))
    return buffer.prio.max().item()


class Curriculum:
    """Level per environment; success moves an environment up."""

    def __init__(self, task, levels: Sequence[float]):
        self.task = task
        self.radius = torch.tensor(levels)
        self.level = torch.zeros(task.num_envs, dtype=torch.long)

    def promote(self, success):
        up = self.level + success.to(self.level.device).long()
        self.level = up.clamp_max(len(self.radius) - 1)
        return self.radius[self.level].mean().item()


def case_curriculum_levels():
    task = PointMass(SimParams(device="cuda:2"))
    cur = Curriculum(task, [0.1, 0.5, 1.0])
    out = []
    for _ in range(2):
        task.step(torch.ones(task.num_envs, 2))
        out.append(cur.promote(task.rew_buf > 0.1))
    return out


class Observer(nn.Module):
    """Estimates the privileged state from a history of observations."""

    def __init__(self, task, horizon=3):
        super().__init__()
        self.horizon = horizon
        self.history = torch.zeros(task.num_envs, horizon, task.num_obs, device=task.device)
        self.net = nn.Linear(horizon * task.num_obs, 3)

    def push(self, obs, done=None):
        self.history = torch.roll(self.history, -1, dims=1)
        self.history[:, -1] = obs
        if done is not None:
            self.history[done.bool()] = 0.0
        return self

    def forward(self):
        return self.net(self.history.flatten(1))


def case_observer_history():
    task = PointMass(SimParams(device="cuda"))
    observer = Observer(task).to(task.device)
    observer.push(task.reset())
    for _ in range(2):
        obs, _, done, _ = task.step(torch.zeros(task.num_envs, 2))
        error = (observer.push(obs, done)() - task.pos).norm(dim=-1)
    return error.mean().item()
