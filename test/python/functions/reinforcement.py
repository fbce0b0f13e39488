"""Parts of a reinforcement learning library: environments, buffers, policies, returns, agents."""
import copy
from collections import deque, namedtuple
from dataclasses import dataclass
from itertools import chain
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical, Independent, Normal, kl_divergence
Transition = namedtuple("Transition", "obs action reward next_obs done")

@dataclass
class AgentConfig:
    obs: int = 4
    act: int = 2
    hidden: int = 8
    gamma: float = 0.9
    n_step: int = 2
    tau: float = 0.1
    device: str = "cuda"

class PointEnv:
    def __init__(self, seed=0, limit=5):
        self.rng, self.limit = np.random.RandomState(seed), limit
    def reset(self):
        self.t, self.state = 0, self.rng.randn(4).astype(np.float32)
        return self.state
    def step(self, action):
        self.t += 1
        self.state = self.state + 0.1 * np.float32(np.sum(action))
        return self.state, float(-np.abs(self.state).sum()), self.t >= self.limit, {"t": self.t}

class VecEnv:
    def __init__(self, n=3):
        self.envs, self.n = [PointEnv(i) for i in range(n)], n
    def reset(self):
        return np.stack([e.reset() for e in self.envs])
    def step(self, actions):
        obs, rewards, dones, infos = zip(*[e.step(a) for e, a in zip(self.envs, actions)])
        obs = [e.reset() if d else o for e, o, d in zip(self.envs, obs, dones)]
        return np.stack(obs), np.array(rewards, dtype=np.float32), np.array(dones), infos

class VecWrapper:
    def __init__(self, venv):
        self.venv, self.n = venv, venv.n
    def __getattr__(self, name):
        return getattr(self.venv, name)

class TorchVec(VecWrapper):
    def __init__(self, venv, device, convert=True):
        super().__init__(venv)
        self.device, self.convert = device, convert
    def reset(self):
        return torch.from_numpy(self.venv.reset()).to(self.device)
    def step(self, actions):
        if self.convert:
            actions = actions.cpu()
        obs, rewards, dones, infos = self.venv.step(actions.squeeze(-1).numpy())  # raises
        return torch.from_numpy(obs).to(self.device), torch.from_numpy(rewards).unsqueeze(1), torch.from_numpy(dones), infos

class ScaleActions(VecWrapper):
    def step(self, actions):
        scaled = np.clip(actions, -1.0, 1.0) * 2.0  # raises
        return self.venv.step(scaled)

class RunningNorm:
    def __init__(self, shape, device=None):
        self.mean, self.var = torch.zeros(shape, device=device), torch.ones(shape, device=device)
        self.count = torch.tensor(1e-4)
    def update(self, x):
        mean, var, n = x.mean(0), x.var(0, unbiased=False), x.shape[0]
        delta, total = mean - self.mean, self.count + n  # raises
        self.mean = self.mean + delta * n / total
        self.var = (self.var * self.count + var * n + delta ** 2 * self.count * n / total) / total
        self.count = total
    def __call__(self, x):
        return ((x - self.mean) / (self.var + 1e-8).sqrt()).clamp(-5, 5)

class RewardScaler(RunningNorm):
    def __init__(self, n, gamma=0.9):
        super().__init__((), None)
        self.returns, self.gamma = torch.zeros(n, 1), gamma
    def __call__(self, reward, done):
        self.returns = self.returns * self.gamma + reward.cpu()
        self.update(self.returns.flatten())
        self.returns[done.cpu()] = 0.0
        return reward / (self.var + 1e-8).sqrt()

class ReplayBuffer:
    def __init__(self, size, cfg, store="cpu", sample_to=None):
        self.obs = torch.zeros(size, cfg.obs, device=store)
        self.next_obs = torch.zeros_like(self.obs)
        self.action = torch.zeros(size, cfg.act, device=store)
        self.reward, self.done = torch.zeros(2, size, 1, device=store)
        self.size, self.pos, self.to = size, 0, sample_to
    def __len__(self):
        return min(self.size, self.pos)
    def add(self, **items):
        for key, value in items.items():
            getattr(self, key)[self.pos % self.size] = torch.as_tensor(value)
        self.pos += 1
    def draw(self, batch):
        return torch.randint(0, len(self), (batch,))
    def sample(self, batch):
        index = self.draw(batch)
        out = Transition(*(getattr(self, k)[index] for k in Transition._fields))  # raises
        return out if self.to is None else Transition(*(x.to(self.to, non_blocking=True) for x in out))

class PrioritizedBuffer(ReplayBuffer):
    def __init__(self, *args, alpha=0.6, priority_device="cpu", **kwargs):
        super().__init__(*args, **kwargs)
        self.alpha, self.last = alpha, None
        self.priority = torch.ones(self.size, device=priority_device)
    def draw(self, batch):
        p = self.priority[: len(self)] ** self.alpha
        self.last = torch.multinomial(p / p.sum(), batch, replacement=True)
        return self.last
    def weights(self, beta=0.4):
        p = self.priority[: len(self)] / self.priority[: len(self)].sum()
        w = (len(self) * p[self.last]) ** -beta
        return (w / w.max()).unsqueeze(1)
    def update(self, errors):
        self.priority.scatter_(0, self.last, errors.detach().abs().squeeze(1) + 1e-3)  # raises

class NStep:
    def __init__(self, n, gamma):
        self.queue, self.n, self.gamma = deque(maxlen=n), n, gamma
    def push(self, transition):
        self.queue.append(transition)
        if len(self.queue) < self.n:
            return None
        reward = sum(self.gamma ** i * t.reward for i, t in enumerate(self.queue))
        return Transition(self.queue[0].obs, self.queue[0].action, reward, self.queue[-1].next_obs, self.queue[-1].done)

class Rollout:
    def __init__(self, steps, n, cfg, device):
        self.obs = torch.zeros(steps + 1, n, cfg.obs, device=device)
        self.rewards, self.values, self.returns = torch.zeros(3, steps + 1, n, 1, device=device)
        self.masks = torch.ones(steps + 1, n, 1)
        self.actions, self.logp = [], []
    def insert(self, i, obs, action, logp, value, reward, done):
        self.obs[i + 1], self.rewards[i], self.values[i] = obs, reward, value
        self.masks[i + 1] = 1 - done.float().unsqueeze(1)
        self.actions.append(action)
        self.logp.append(logp)
    def compute(self, last, gamma=0.9, lam=0.95):
        self.values[-1], gae = last, 0
        for i in reversed(range(len(self.actions))):
            delta = self.rewards[i] + gamma * self.values[i + 1] * self.masks[i + 1] - self.values[i]  # raises
            gae = delta + gamma * lam * self.masks[i + 1] * gae
            self.returns[i] = gae + self.values[i]
    def numpy_returns(self, gamma=0.9):
        rewards, masks = self.rewards.cpu().numpy(), self.masks.numpy()
        out = np.zeros_like(rewards)
        for i in reversed(range(len(rewards) - 1)):
            out[i] = rewards[i] + gamma * masks[i + 1] * out[i + 1]
        return torch.as_tensor(out, device=self.rewards.device)
    def batches(self, size):
        flat = [torch.stack(x).flatten(0, 1) for x in (self.actions, self.logp)]
        order = torch.randperm(len(flat[0]))
        for index in order.split(size):
            yield (self.obs[:-1].flatten(0, 1)[index], *[f[index] for f in flat], self.returns[:-1].flatten(0, 1)[index])

def mlp(i, h, o):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))

class Policy(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.pi, self.v = mlp(cfg.obs, cfg.hidden, cfg.act), mlp(cfg.obs, cfg.hidden, 1)
    def dist(self, obs):
        return Categorical(logits=self.pi(obs))
    @torch.no_grad()
    def act(self, obs):
        dist = self.dist(obs)
        action = dist.sample()  # raises
        return action, dist.log_prob(action), self.v(obs)
    def evaluate(self, obs, action):
        return self.dist(obs).log_prob(action), self.dist(obs).entropy(), self.v(obs)

class GaussianPolicy(Policy):
    def __init__(self, cfg, learn_std=True):
        super().__init__(cfg)
        std = torch.full((cfg.act,), -0.5)
        self.log_std = nn.Parameter(std) if learn_std else std
    def dist(self, obs):
        mean = self.pi(obs)
        return Independent(Normal(mean, self.log_std.exp().expand_as(mean)), 1)

class MaskedPolicy(Policy):
    def dist(self, obs, allowed=None):
        logits = self.pi(obs)
        if allowed is not None:
            logits = torch.where(allowed, logits, torch.full_like(logits, -1e8))  # raises
        return Categorical(logits=logits)

class RecurrentPolicy(Policy):
    def __init__(self, cfg):
        super().__init__(cfg)
        self.cell = nn.GRUCell(cfg.obs, cfg.obs)
        self.state = None
    def start(self, n, like=None):
        self.state = torch.zeros(n, self.cell.hidden_size) if like is None else like.new_zeros(n, self.cell.hidden_size)
    def dist(self, obs):
        self.state = self.cell(obs, self.state)  # raises
        return super().dist(self.state)
    def cut(self, done):
        self.state = self.state * (~done).float().unsqueeze(1).to(self.state)

class SquashedActor(nn.Module):
    def __init__(self, cfg, low=-2.0, high=2.0):
        super().__init__()
        self.net = mlp(cfg.obs, cfg.hidden, 2 * cfg.act)
        low, high = torch.full((cfg.act,), low), torch.full((cfg.act,), high)
        self.register_buffer("scale", (high - low) / 2)
        self.shift = (high + low) / 2
    def forward(self, obs, deterministic=False):
        mean, log_std = self.net(obs).chunk(2, -1)
        dist = Normal(mean, log_std.clamp(-5, 2).exp())
        raw = mean if deterministic else dist.rsample()
        logp = (dist.log_prob(raw) - torch.log(1 - raw.tanh() ** 2 + 1e-6)).sum(-1, keepdim=True)
        action = raw.tanh() * self.scale
        return (action if deterministic else action + self.shift), logp  # raises

class Noise:
    def __init__(self, size, theta=0.15):
        self.theta, self.state = theta, torch.zeros(size)
    def __call__(self, action):
        self.state = self.state - self.theta * self.state + 0.2 * torch.randn_like(self.state)
        return action + self.state  # raises

class SAC:
    def __init__(self, cfg, target_entropy=None, alpha_lr=1e-3):
        self.cfg, self.actor = cfg, SquashedActor(cfg).to(cfg.device)
        self.actor.shift = self.actor.shift.to(cfg.device)
        self.critics = nn.ModuleList(mlp(cfg.obs + cfg.act, cfg.hidden, 1) for _ in range(2)).to(cfg.device)
        self.targets = copy.deepcopy(self.critics).requires_grad_(False)
        self.log_alpha = torch.zeros((), requires_grad=True)
        self.entropy = -float(cfg.act) if target_entropy is None else target_entropy
        self.opt = torch.optim.Adam(chain(self.actor.parameters(), self.critics.parameters(), [self.log_alpha]), alpha_lr)
    def q(self, nets, obs, action):
        return torch.stack([net(torch.cat([obs, action], dim=-1)) for net in nets])
    def update(self, batch, weights=None):
        alpha = self.log_alpha.exp()
        with torch.no_grad():
            action, logp = self.actor(batch.next_obs)
            target = self.q(self.targets, batch.next_obs, action).min(0).values - alpha * logp
            target = batch.reward + self.cfg.gamma * (1 - batch.done) * target
        error = self.q(self.critics, batch.obs, batch.action) - target
        loss = (error ** 2 * (1.0 if weights is None else weights)).mean()  # raises
        action, logp = self.actor(batch.obs)
        loss = loss + (alpha.detach() * logp - self.q(self.critics, batch.obs, action).min(0).values).mean()
        loss = loss - (self.log_alpha * (logp + self.entropy).detach()).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.sync()
        return error[0]
    @torch.no_grad()
    def sync(self):
        for t, s in zip(self.targets.parameters(), self.critics.parameters()):
            t.mul_(1 - self.cfg.tau).add_(s, alpha=self.cfg.tau)
    def actor_copy(self, device):
        twin = SquashedActor(self.cfg).to(device)
        twin.load_state_dict(self.actor.state_dict())
        return twin

def collect(venv, policy, cfg, steps=4, device="cuda", allowed=None, norm=None):
    rollout, obs = Rollout(steps, venv.n, cfg, device), venv.reset()
    for i in range(steps):
        if norm is not None:
            norm.update(obs)
            obs = norm(obs)
        action, logp, value = policy.act(obs)
        obs, reward, done, _ = venv.step(action)
        rollout.insert(i, obs, action, logp, value, reward, done)
        if hasattr(policy, "cut"):
            policy.cut(done)
    return rollout, obs

def ppo(policy, rollout, clip=0.2):
    opt, total = torch.optim.Adam(policy.parameters(), 1e-3), 0.0
    for obs, action, old, returns in rollout.batches(4):
        logp, entropy, value = policy.evaluate(obs, action)
        ratio, adv = (logp - old).exp(), (returns - value.detach()).squeeze(1)
        loss = -torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv).mean() + F.mse_loss(value, returns)
        opt.zero_grad()
        (loss - 0.01 * entropy.mean()).backward()
        opt.step()
        total += loss.item()
    return total

def fill(buffer, cfg, n=6, device=None):
    env, pusher = PointEnv(), NStep(cfg.n_step, cfg.gamma)
    obs = env.reset()
    for _ in range(n):
        action = torch.randn(cfg.act, device=device)
        next_obs, reward, done, _ = env.step(action.tolist())
        item = pusher.push(Transition(obs, action, reward, next_obs, float(done)))
        if item is not None:
            buffer.add(**item._asdict())
        obs = next_obs
    return buffer

def case_ppo_returns_in_numpy():
    cfg = AgentConfig()
    policy = Policy(cfg).cuda()
    rollout, _ = collect(TorchVec(VecEnv(), "cuda"), policy, cfg)
    rollout.returns = rollout.numpy_returns()
    return ppo(policy, rollout)
def case_ppo_generalised_advantage():
    cfg = AgentConfig()
    policy = Policy(cfg).cuda()
    rollout, obs = collect(TorchVec(VecEnv(), "cuda"), policy, cfg)
    with torch.no_grad():
        rollout.compute(policy.v(obs))
    return ppo(policy, rollout)
def case_rollout_stored_on_host():
    cfg = AgentConfig()
    policy = GaussianPolicy(cfg).cuda()
    rollout, obs = collect(TorchVec(VecEnv(), "cuda"), policy, cfg, device="cpu")
    rollout.compute(policy.v(obs).detach())
    return rollout.returns.numpy().mean(), kl_divergence(policy.dist(obs), policy.dist(obs + 1)).sum().item()
def case_actions_not_converted():
    cfg = AgentConfig()
    return collect(TorchVec(VecEnv(), "cuda", convert=False), Policy(cfg).cuda(), cfg)
def case_normalised_observations():
    cfg = AgentConfig()
    return collect(TorchVec(VecEnv(), "cuda:1"), Policy(cfg).to("cuda:1"), cfg, norm=RunningNorm(4, "cuda:1"))
def case_normaliser_without_device():
    cfg = AgentConfig()
    return collect(TorchVec(VecEnv(), "cuda"), Policy(cfg).cuda(), cfg, norm=RunningNorm(4))
def case_reward_scaler():
    cfg, scaler = AgentConfig(), RewardScaler(3)
    rollout, _ = collect(TorchVec(VecEnv(), "cuda"), Policy(cfg).cuda(), cfg)
    return [scaler(r, 1 - m.cuda() > 0) for r, m in zip(rollout.rewards, rollout.masks)]
def case_scaled_actions():
    venv = ScaleActions(VecEnv())
    obs = torch.from_numpy(venv.reset()).cuda()
    action, _ = SAC(AgentConfig()).actor(obs)
    return venv.step(action.detach())
def case_scaled_actions_of_copy():
    venv, agent = ScaleActions(VecEnv()), SAC(AgentConfig())
    with torch.no_grad():
        return venv.step(agent.actor_copy("cpu")(torch.from_numpy(venv.reset()))[0].numpy())
def case_gaussian_fixed_deviation():
    policy = GaussianPolicy(AgentConfig(), learn_std=False).cuda()
    return policy.act(torch.randn(3, 4, device="cuda"))
def case_masked_policy():
    policy, obs = MaskedPolicy(AgentConfig()).cuda(), torch.randn(3, 4, device="cuda")
    return policy.dist(obs, torch.from_numpy(np.array([[True, False]] * 3)))
def case_masked_policy_from_counts():
    policy, obs = MaskedPolicy(AgentConfig()).cuda(), torch.randn(3, 4, device="cuda")
    return policy.dist(obs, F.one_hot(obs.abs()[:, 0].long() % 2, 2).bool()).probs.detach().cpu().numpy()
def case_recurrent_started():
    cfg = AgentConfig()
    policy = RecurrentPolicy(cfg).cuda()
    policy.start(3, like=policy.cell.weight_hh)
    return collect(TorchVec(VecEnv(), "cuda"), policy, cfg)[0].numpy_returns()
def case_recurrent_started_plain():
    cfg = AgentConfig()
    policy = RecurrentPolicy(cfg).cuda()
    policy.start(3)
    return collect(TorchVec(VecEnv(), "cuda"), policy, cfg)
def case_sac_sampling_to_gpu():
    cfg = AgentConfig()
    buffer, agent = fill(ReplayBuffer(8, cfg, sample_to="cuda"), cfg), SAC(cfg)
    return [agent.update(buffer.sample(4)).mean().item() for _ in range(2)]
def case_sac_prioritised():
    cfg = AgentConfig(device="cuda:2")
    buffer, agent = fill(PrioritizedBuffer(8, cfg, sample_to="cuda:2"), cfg, device="cuda:2"), SAC(cfg)
    return buffer.update(agent.update(buffer.sample(4)).cpu())
def case_sac_prioritised_update():
    cfg = AgentConfig()
    buffer, agent = fill(PrioritizedBuffer(8, cfg, sample_to="cuda"), cfg), SAC(cfg)
    return buffer.update(agent.update(buffer.sample(4)))
def case_sac_prioritised_weights():
    cfg = AgentConfig()
    buffer, agent = fill(PrioritizedBuffer(8, cfg, sample_to="cuda"), cfg), SAC(cfg)
    batch = buffer.sample(4)
    return agent.update(batch, buffer.weights())
def case_priorities_apart_from_storage():
    cfg = AgentConfig()
    return fill(PrioritizedBuffer(8, cfg, priority_device="cuda"), cfg).sample(4)
def case_storage_on_gpu():
    cfg = AgentConfig()
    return SAC(cfg).update(fill(PrioritizedBuffer(8, cfg, store="cuda"), cfg).sample(4))
def case_actor_twin():
    agent = SAC(AgentConfig())
    return agent.actor_copy("cuda")(torch.randn(3, 4, device="cuda"))
def case_actor_twin_deterministic():
    agent = SAC(AgentConfig())
    return agent.actor_copy("cuda:1")(torch.randn(3, 4, device="cuda:1"), deterministic=True)
def case_exploration_noise():
    action, _ = SAC(AgentConfig()).actor(torch.randn(1, 4, device="cuda"))
    return Noise(2)(action)
def case_exploration_noise_after_download():
    noise, actor = Noise(2), SAC(AgentConfig()).actor
    return [noise(actor(torch.randn(1, 4, device="cuda"))[0].detach().cpu()).numpy() for _ in range(2)]
