"""Reinforcement learning: on-policy and off-policy agents, storages, normalisers, exploration."""
import copy
import math
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical, Normal

@dataclass
class AgentConfig:
    obs_dim: int = 5
    num_actions: int = 3
    hidden: int = 8
    gamma: float = 0.99
    lam: float = 0.95
    tau: float = 0.05
    num_envs: int = 4
    horizon: int = 6
    device: str = "cuda:0"
    extras: dict = field(default_factory=dict)

class Batch(NamedTuple):
    obs: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor
    next_obs: torch.Tensor
    dones: torch.Tensor

    def to(self, device):
        return Batch(*(each.to(device) for each in self))

class VecEnv:
    def __init__(self, config, device="cpu"):
        self.config, self.device, self.rng = config, torch.device(device), np.random.RandomState(0)

    def _wrap(self, array):
        return torch.as_tensor(array, dtype=torch.float32).to(self.device)

    def reset(self):
        return self._wrap(self.rng.randn(self.config.num_envs, self.config.obs_dim))

    def step(self, actions):
        n = len(actions.cpu().numpy())
        return self.reset(), self._wrap(self.rng.randn(n)), self._wrap(self.rng.rand(n) < 0.1)

class RunningMeanStd(nn.Module):
    def __init__(self, dim, epsilon=1e-4):
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("var", torch.ones(dim))
        self.count = epsilon

    def update(self, x):
        delta, total = x.mean(0) - self.mean, self.count + x.shape[0]
        self.mean = self.mean + delta * x.shape[0] / total
        self.var = (self.var * self.count + x.var(0, unbiased=False) * x.shape[0]) / total
        self.count = total

    def forward(self, x):
        return ((x - self.mean) / torch.sqrt(self.var + 1e-8)).clamp(-5, 5)

def mlp(sizes, act=nn.Tanh):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), act()]
    return nn.Sequential(*layers[:-1])

class ActorCritic(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.normaliser = RunningMeanStd(config.obs_dim)
        self.actor = mlp([config.obs_dim, config.hidden, config.num_actions])
        self.critic = mlp([config.obs_dim, config.hidden, 1])

    @property
    def device(self):
        return next(self.parameters()).device

    def distribution(self, obs):
        return Categorical(logits=self.actor(self.normaliser(obs)))

    def act(self, obs):
        dist = self.distribution(obs)
        action = dist.sample()
        return action, dist.log_prob(action), self.critic(obs).squeeze(-1)

    def evaluate(self, obs, actions):
        dist = self.distribution(obs)
        return dist.log_prob(actions), dist.entropy().mean(), self.critic(obs).squeeze(-1)

class RecurrentPolicy(ActorCritic):
    def __init__(self, config, with_last_action=False):
        super().__init__(config)
        self.with_last_action = with_last_action
        width = config.obs_dim + (config.num_actions if with_last_action else 0)
        self.core = nn.LSTM(width, config.hidden)
        self.head = nn.Linear(config.hidden, config.num_actions)

    def initial_state(self, batch, device=None):
        shape = (1, batch, self.config.hidden)
        return tuple(torch.zeros(shape, device=device or self.device) for _ in range(2))

    def unroll(self, obs, state, resets, last_action=None):
        if self.with_last_action:
            hot = F.one_hot(last_action, self.config.num_actions).float()
            obs = torch.cat([obs, hot], dim=-1)  # raises
        outs = []
        for t in range(obs.shape[0]):
            keep = (1.0 - resets[t]).view(1, -1, 1)
            state = tuple(keep * s for s in state)
            out, state = self.core(obs[t:t + 1], state)
            outs.append(self.head(out))
        return torch.cat(outs), state

    def sample_step(self, obs, state):
        out, state = self.core(obs.unsqueeze(0), state)  # raises
        return Categorical(logits=self.head(out[0])).sample(), state

class RolloutStorage:
    KEYS = ("actions", "rewards", "dones", "values", "log_probs")

    def __init__(self, config, device="cpu"):
        self.config, self.device, self.pos = config, device, 0
        shape = (config.horizon, config.num_envs)
        self.data = {key: torch.zeros(shape, device=device) for key in self.KEYS}
        self.data["obs"] = torch.zeros(*shape, config.obs_dim, device=device)

    def add(self, **items):
        for key, value in items.items():
            self.data[key][self.pos] = value
        self.pos = (self.pos + 1) % self.config.horizon

    def gae(self, last_value, running=0.0):
        d, c = self.data, self.config
        advantages = torch.zeros_like(d["rewards"])
        next_value = last_value.to(self.device)
        for t in reversed(range(c.horizon)):
            alive = 1.0 - d["dones"][t]
            delta = d["rewards"][t] + c.gamma * alive * next_value - d["values"][t]
            running = delta + c.gamma * c.lam * alive * running  # raises
            advantages[t] = running
            next_value = d["values"][t]
        return advantages, advantages + d["values"]

    def minibatches(self, advantages, returns, parts=2):
        flat = {k: v.flatten(0, 1) for k, v in dict(self.data, advantages=advantages, returns=returns).items()}
        for index in torch.randperm(flat["actions"].shape[0]).chunk(parts):
            yield {k: v[index] for k, v in flat.items()}

class BaseAlgorithm:
    def __init__(self, config):
        self.config = config
        self.build()

    def build(self):
        raise NotImplementedError

class PPO(BaseAlgorithm):
    policy_class = ActorCritic

    def build(self):
        self.policy = self.policy_class(self.config).to(self.config.device)
        self.storage = RolloutStorage(self.config, self.config.extras.get("storage_device", "cpu"))
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=1e-3)

    def collect(self, env):
        obs = env.reset().to(self.policy.device)
        for _ in range(self.config.horizon):
            with torch.no_grad():
                action, log_prob, value = self.policy.act(obs)
            new_obs, reward, done = env.step(action)
            self.policy.normaliser.update(obs)
            self.storage.add(obs=obs, actions=action, rewards=reward, dones=done, values=value, log_probs=log_prob)
            obs = new_obs.to(self.policy.device)
        return self.policy.critic(obs).squeeze(-1).detach()

    def prepare(self, batch):
        return {k: v.to(self.policy.device) for k, v in batch.items()}

    def update(self, last_value):
        advantages, returns = self.storage.gae(last_value)
        for batch in self.storage.minibatches(advantages, returns):
            batch = self.prepare(batch)
            log_probs, entropy, values = self.policy.evaluate(batch["obs"], batch["actions"])
            ratio = torch.exp(log_probs - batch["log_probs"])  # raises
            adv = (batch["advantages"] - batch["advantages"].mean()) / (batch["advantages"].std() + 1e-8)
            loss = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean() - 0.01 * entropy
            loss = loss + F.mse_loss(values, batch["returns"])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()

class LeanPPO(PPO):
    def prepare(self, batch):
        return {k: v.to(self.policy.device) if k in ("obs", "actions") else v for k, v in batch.items()}

class ReplayBuffer:
    def __init__(self, config, capacity=16, device="cpu"):
        self.config, self.capacity, self.device, self.size = config, capacity, device, 0
        self.obs = torch.zeros(capacity, config.obs_dim, device=device)
        self.next_obs = torch.zeros_like(self.obs)
        self.actions = torch.zeros(capacity, dtype=torch.long, device=device)
        self.rewards, self.dones = torch.zeros(capacity, device=device), torch.zeros(capacity, device=device)

    def extend(self, batch):
        for row in zip(*batch):
            at = self.size % self.capacity
            self.obs[at], self.actions[at], self.rewards[at], self.next_obs[at], self.dones[at] = row
            self.size += 1

    def draw(self, n):
        return torch.randint(0, min(self.size, self.capacity), (n,))

    def sample(self, n):
        i = self.draw(n)
        return Batch(self.obs[i], self.actions[i], self.rewards[i], self.next_obs[i], self.dones[i]), i

class PrioritizedReplay(ReplayBuffer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.priorities = torch.ones(self.capacity)

    def draw(self, n):
        return torch.multinomial(self.priorities, n, replacement=True)

    def update_priorities(self, index, td_error):
        self.priorities[index] = td_error.abs().cpu() + 1e-3

    def weights(self, index, beta=0.4):
        w = (self.capacity * self.priorities[index] / self.priorities.sum()) ** -beta  # raises
        return w / w.max()

class NStep:
    def __init__(self, n, gamma):
        self.n, self.gamma, self.queue = n, gamma, deque(maxlen=n)

    def push(self, reward):
        self.queue.append(reward)
        return len(self.queue) == self.n

    def fold(self):
        total = 0.0
        for reward in reversed(self.queue):
            total = reward + self.gamma * total
        return total

class VectorNStep(NStep):
    def fold(self):
        powers = self.gamma ** torch.arange(self.n, dtype=torch.float32)
        return powers @ torch.stack(list(self.queue))  # raises

class LinearSchedule:
    def __init__(self, start, end, steps):
        self.values = torch.linspace(start, end, steps)

    def at(self, step):
        return self.values[min(step, len(self.values) - 1)]

class EpsilonGreedy:
    def __init__(self, schedule, num_actions):
        self.schedule, self.num_actions = schedule, num_actions

    def __call__(self, q, step):
        greedy = q.argmax(-1)
        explore = self.coins(q) < self.schedule.at(step)
        return torch.where(explore, torch.randint_like(greedy, self.num_actions), greedy)  # raises

    def coins(self, q):
        return torch.rand(q.shape[0], device=q.device)

class SharedCoins(EpsilonGreedy):
    def coins(self, q):
        self.drawn = torch.rand(len(q)) if getattr(self, "drawn", None) is None else self.drawn
        return self.drawn

class DQN(BaseAlgorithm):
    def build(self):
        self.online = mlp([self.config.obs_dim, self.config.hidden, self.config.num_actions])
        self.target = copy.deepcopy(self.online)
        self.online.to(self.config.device)
        if self.config.extras.get("move_target", True):
            self.target.to(self.config.device)
        self.optimizer = torch.optim.SGD(self.online.parameters(), lr=0.1)

    def td_error(self, batch):
        with torch.no_grad():
            best = self.target(batch.next_obs).max(-1).values
        wanted = batch.rewards + self.config.gamma * (1 - batch.dones) * best
        return self.online(batch.obs).gather(-1, batch.actions[:, None]).squeeze(-1) - wanted

    def learn(self, batch, weights=None):
        error = self.td_error(batch)
        loss = error.pow(2).mean() if weights is None else (weights * error.pow(2)).mean()  # raises
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return error.detach()

    def sync(self):
        for t, p in zip(self.target.parameters(), self.online.parameters()):
            t.data.lerp_(p.data, self.config.tau)  # raises

class SAC(BaseAlgorithm):
    def build(self):
        shape = self.config.extras.get("alpha_shape", ())
        self.actor = mlp([self.config.obs_dim, self.config.hidden, 4]).to(self.config.device)
        self.log_alpha = torch.full(shape, -1.0, requires_grad=True)
        self.alpha_optimizer = torch.optim.Adam([self.log_alpha], lr=1e-3)
        self.target_entropy = -float(np.prod((2,)))

    def sample(self, obs):
        mean, log_std = self.actor(obs).chunk(2, -1)
        dist = Normal(mean, log_std.clamp(-5, 2).exp())
        raw = dist.rsample()
        return raw.tanh(), (dist.log_prob(raw) - 2 * (math.log(2) - raw - F.softplus(-2 * raw))).sum(-1)

    def learn(self, obs):
        _, log_prob = self.sample(obs)
        alpha_loss = -(self.log_alpha.exp() * (log_prob + self.target_entropy).detach()).mean()  # raises
        self.alpha_optimizer.zero_grad()
        alpha_loss.backward()
        self.alpha_optimizer.step()
        return float(self.log_alpha.exp())

def transitions(config, device="cpu", n=8):
    g = torch.Generator().manual_seed(3)
    return Batch(torch.randn(n, config.obs_dim, generator=g), torch.randint(0, config.num_actions, (n,), generator=g),
                 torch.randn(n, generator=g), torch.randn(n, config.obs_dim, generator=g), torch.zeros(n)).to(device)

def case_ppo_cpu_storage():
    agent = PPO(AgentConfig())
    agent.update(agent.collect(VecEnv(agent.config)))

def case_ppo_gpu_storage_second_gpu():
    agent = PPO(AgentConfig(device="cuda:1", extras={"storage_device": "cuda:1"}))
    agent.update(agent.collect(VecEnv(agent.config, "cuda:0")))

def case_lean_ppo():
    agent = LeanPPO(AgentConfig())
    agent.update(agent.collect(VecEnv(agent.config, "cuda")))

def case_gae_resumed():
    storage = RolloutStorage(AgentConfig(), "cuda:0")
    storage.add(rewards=torch.ones(4), values=torch.rand(4))
    storage.gae(torch.zeros(4), running=torch.zeros(storage.config.num_envs))

def case_recurrent_unroll():
    policy = RecurrentPolicy(AgentConfig()).to("cuda:2")
    obs = torch.randn(4, 3, 5, device=policy.device)
    logits, state = policy.unroll(obs, policy.initial_state(3), torch.zeros(4, 3).type_as(obs))
    policy.sample_step(obs[0], tuple(s.detach() for s in state))

def case_recurrent_last_action_of_actor():
    policy = RecurrentPolicy(AgentConfig(), with_last_action=True).cuda()
    obs = torch.randn(4, 3, 5).cuda()
    policy.unroll(obs, policy.initial_state(3), torch.zeros(4, 3).cuda(), torch.zeros(4, 3, dtype=torch.long))

def case_recurrent_state_from_actor():
    actor = RecurrentPolicy(AgentConfig())
    state = actor.initial_state(2)
    learner = copy.deepcopy(actor).to("cuda:0")
    learner.sample_step(torch.randn(2, 5, device=learner.device), state)

def replay_run(kind, source="cpu"):
    config = AgentConfig()
    buffer, agent = kind(config, device="cuda:0"), DQN(config)
    buffer.extend(transitions(config, source, 16))
    return buffer, agent, *buffer.sample(6)

def case_replay_gpu_with_cpu_draw():
    _, agent, batch, _ = replay_run(ReplayBuffer)
    agent.learn(batch)
    agent.sync()

def case_prioritized_weights():
    buffer, agent, batch, index = replay_run(PrioritizedReplay, "cuda:0")
    agent.learn(batch, buffer.weights(index))

def case_prioritized_update():
    buffer, agent, batch, index = replay_run(PrioritizedReplay)
    error = agent.learn(batch, buffer.weights(index).to(batch.rewards))
    buffer.update_priorities(index, error)

def case_worst_first_replay():
    config = AgentConfig()
    buffer, agent = PrioritizedReplay(config), DQN(config)
    error = agent.td_error(transitions(config, "cuda:0"))
    worst = error.detach().abs().topk(3)
    buffer.update_priorities(worst.indices.cpu(), worst.values)
    assert buffer.size == 0 and buffer.weights(worst.indices).shape == (3,)

def case_target_left_behind():
    agent = DQN(AgentConfig(extras={"move_target": False}))
    agent.online(torch.randn(2, 5, device="cuda:0"))
    agent.sync()

def folded(steps, device="cuda:0"):
    while not steps.push(torch.ones(4, device=device)):
        pass
    return steps.fold()

def case_nstep_fold():
    folded(NStep(3, 0.9)).add_(folded(NStep(2, 0.9)))

def case_nstep_vector():
    folded(VectorNStep(3, 0.9), "cpu").add_(folded(NStep(2, 0.9), "cpu"))
    folded(VectorNStep(3, 0.9))

def case_epsilon_greedy():
    explore = EpsilonGreedy(LinearSchedule(1.0, 0.1, 10), 3)
    explore(torch.rand(4, 3, device="cuda:1"), 4)

def case_sac_scalar_alpha():
    agent = SAC(AgentConfig())
    agent.learn(torch.randn(3, 5, device="cuda:0"))

def case_sac_alpha_vector():
    agent = SAC(AgentConfig(extras={"alpha_shape": (1,)}))
    agent.learn(torch.randn(3, 5, device="cuda:0"))

def case_shared_coins():
    explore = SharedCoins(LinearSchedule(0.5, 0.5, 2), 3)
    explore(torch.rand(4, 3), 0)
    explore(torch.rand(4, 3, device="cuda:1"), 1)
