"""Small reinforcement learning agents: replay, rollouts, actor-critic, SAC-ish pieces, population helpers."""
import collections
import copy
import functools
import random
from dataclasses import dataclass

import numpy as np
import torch as th
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical, Normal

Transition = collections.namedtuple("Transition", "obs action reward next_obs done")


class PointEnv:
    """A toy environment, numpy in and numpy out."""

    def __init__(self, dim=4, horizon=5):
        self.dim, self.horizon = dim, horizon

    def reset(self):
        self.t = 0
        self.x = np.random.randn(self.dim).astype(np.float32)
        return self.x

    def step(self, a):
        if isinstance(a, th.Tensor):
            a = a.numpy()  # raises
        self.t += 1
        self.x = self.x * 0.9 + 0.1 * float(np.mean(a))
        return self.x.astype(np.float32), -float(np.abs(self.x).sum()), self.t >= self.horizon, {}


def mlp(sizes, act=nn.Tanh, out=nn.Identity):
    layers = []
    for j in range(len(sizes) - 1):
        layers += [nn.Linear(sizes[j], sizes[j + 1]), (act if j < len(sizes) - 2 else out)()]
    return nn.Sequential(*layers)


class Replay:
    def __init__(self, cap=50):
        self.data = collections.deque(maxlen=cap)

    def push(self, *args):
        self.data.append(Transition(*args))

    def sample(self, n, device=None):
        rows = random.choices(self.data, k=n)
        obs, act, rew, nxt, done = zip(*rows)
        batch = Transition(
            th.as_tensor(np.stack(obs)),
            th.as_tensor(act),
            th.as_tensor(rew, dtype=th.float32),
            th.as_tensor(np.stack(nxt)),
            th.as_tensor(done, dtype=th.float32),
        )
        return batch if device is None else Transition(*[t.to(device) for t in batch])


class PrioritizedReplay(Replay):
    def __init__(self, cap=50):
        super().__init__(cap)
        self.prio = th.ones(cap)

    def sample(self, n, device=None):
        w = self.prio[: len(self.data)]
        self.last = th.multinomial(w / w.sum(), n, replacement=True)
        rows = [self.data[i] for i in self.last]
        cols = list(zip(*rows))
        batch = Transition(*(th.as_tensor(np.stack(c), dtype=th.float32) for c in cols))
        batch = batch._replace(action=batch.action.long())
        weights = (1.0 / w[self.last]) / (1.0 / w).max()
        if device is None:
            return batch, weights
        return Transition(*[t.to(device) for t in batch]), weights

    def update(self, td):
        self.prio[self.last] = td.detach().abs().cpu() + 1e-3


class RunningNorm:
    """Welford; follows the device of the first thing it sees."""

    mean = None

    def __init__(self, eps=1e-4):
        self.eps = eps
        self.count = 0

    def __call__(self, x, update=True):
        if self.mean is None:
            self.mean = th.zeros_like(x[0])
            self.var = th.ones_like(x[0])
        if update:
            self.count += len(x)
            delta = x.mean(0) - self.mean  # raises
            self.mean = self.mean + delta * len(x) / self.count
        return (x - self.mean) / (self.var.sqrt() + self.eps)

    def to(self, device):
        self.mean, self.var = self.mean.to(device), self.var.to(device)
        return self


class QNet(nn.Module):
    def __init__(self, obs=4, act=3):
        super().__init__()
        self.body = mlp([obs, 8, act])

    def forward(self, x):
        return self.body(x)  # raises


class DQN:
    def __init__(self, device="cpu", gamma=0.9):
        self.device = th.device(device)
        self.gamma = gamma
        self.q = QNet().to(self.device)
        self.target = copy.deepcopy(self.q)
        self.opt = th.optim.Adam(self.q.parameters(), lr=1e-3)

    def act(self, obs, eps=0.1):
        if random.random() < eps:
            return th.randint(0, 3, (1,)).item()
        with th.no_grad():
            x = th.from_numpy(obs).unsqueeze(0).to(self.device)
            return self.q(x).argmax(1).item()

    def td(self, b):
        q = self.q(b.obs).gather(1, b.action.view(-1, 1)).squeeze(1)
        with th.no_grad():
            nxt = self.target(b.next_obs).max(1).values
        return q - (b.reward + self.gamma * (1 - b.done) * nxt)

    def update(self, batch, weights=None):
        err = self.td(batch)
        loss = err.pow(2)
        if weights is not None:
            loss = loss * weights  # raises
        self.opt.zero_grad()
        loss.mean().backward()
        self.opt.step()
        return err


class FreshTargetDQN(DQN):
    """Rebuilds the target network on every sync."""

    def sync(self):
        fresh = QNet()
        fresh.load_state_dict(self.q.state_dict())
        self.target = fresh.eval()

    def td(self, b):
        q = self.q(b.obs).gather(1, b.action.view(-1, 1)).squeeze(1)
        with th.no_grad():
            best = self.target(b.next_obs)
        return q - (b.reward + self.gamma * (1 - b.done) * best.max(1).values)


def collect(env, policy, buf, steps=8):
    obs = env.reset()
    for _ in range(steps):
        a = policy(obs)
        nxt, r, done, _ = env.step(a)
        buf.push(obs, a, r, nxt, done)
        obs = env.reset() if done else nxt
    return buf


class GaussianActor(nn.Module):
    def __init__(self, obs=4, act=2, learn_std=True):
        super().__init__()
        self.mu = mlp([obs, 8, act])
        std = -0.5 * th.ones(act)
        self.log_std = nn.Parameter(std) if learn_std else std

    def dist(self, obs):
        mu = self.mu(obs)
        return Normal(mu, self.log_std.exp().expand_as(mu))

    def forward(self, obs, a=None):
        pi = self.dist(obs)
        a = pi.rsample() if a is None else a  # raises
        return a, pi.log_prob(a).sum(-1)


class SquashedActor(GaussianActor):
    def __init__(self, low, high, **kw):
        super().__init__(**kw)
        self.scale = (high - low) / 2
        self.register_buffer("shift", (high + low) / 2)

    def forward(self, obs, a=None):
        raw, logp = super().forward(obs)
        return raw.tanh() * self.scale + self.shift, logp  # raises


def discount(rewards, values, gamma=0.9, lam=0.95):
    """GAE over a time major rollout."""
    adv = th.zeros_like(rewards)
    last = 0.0
    for t in reversed(range(len(rewards))):
        nxt = values[t + 1] if t + 1 < len(values) else th.tensor(0.0)
        delta = rewards[t] + gamma * nxt - values[t]
        last = delta + gamma * lam * last
        adv[t] = last
    return adv


def vectorized_discount(rewards, values, gamma=0.9):
    n = len(rewards)
    powers = gamma ** th.arange(n)
    tri = th.triu(powers.unsqueeze(0) / powers.unsqueeze(1))
    return tri.to(rewards.device) @ rewards - values


def n_step_returns(rewards, gamma=0.9, tail=None):
    powers = gamma ** th.arange(len(rewards), dtype=rewards.dtype)
    head = (powers * rewards).sum()  # raises
    return head if tail is None else head + gamma ** len(rewards) * tail


@dataclass
class Rollout:
    obs: th.Tensor
    logp: th.Tensor
    value: th.Tensor
    reward: th.Tensor

    @classmethod
    def empty(cls, n, dim, device="cpu"):
        mk = functools.partial(th.zeros, n, device=device)
        return cls(th.zeros(n, dim, device=device), mk(), mk(), th.zeros(n))

    def write(self, t, **kw):
        for k, v in kw.items():
            getattr(self, k)[t] = v

    def minibatches(self, n):
        perm = th.randperm(len(self.obs))
        for idx in perm.split(n):
            yield self.obs[idx], self.logp[idx], self.value[idx], self.reward[idx]


class AutoTemperature:
    def __init__(self, target=-2.0, device=None):
        self.log_alpha = th.zeros(1, requires_grad=True, device=device)
        self.opt = th.optim.Adam([self.log_alpha], lr=1e-2)
        self.target = target

    @property
    def alpha(self):
        return self.log_alpha.exp().detach()

    def update(self, logp):
        loss = -(self.log_alpha * (logp + self.target).detach()).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()


def polyak(src, dst, tau=0.1):
    with th.no_grad():
        for p, q in zip(src.parameters(), dst.parameters()):
            q.mul_(1 - tau).add_(tau * p)  # raises


def case_dqn_prioritized_weights():
    env, agent, buf = PointEnv(), DQN("cuda"), PrioritizedReplay()
    collect(env, agent.act, buf)
    batch, w = buf.sample(4, agent.device)
    err = agent.update(batch)
    buf.update(err)
    batch, w = buf.sample(4, agent.device)
    return agent.update(batch, w)


def case_dqn_uniform_replay():
    env, agent, buf = PointEnv(), DQN("cuda:1"), Replay()
    collect(env, agent.act, buf)
    for _ in range(3):
        err = agent.update(buf.sample(4, device=agent.device))
    polyak(agent.q, agent.target)
    return err.abs().mean().item()


def case_target_rebuilt_on_sync():
    agent, buf = FreshTargetDQN("cuda"), Replay()
    collect(PointEnv(), agent.act, buf)
    losses = []
    for step in range(4):
        losses.append(agent.update(buf.sample(4, agent.device)).mean().item())
        if step == 2:
            agent.sync()
    return losses


def case_policy_action_goes_to_env():
    actor = GaussianActor().cuda()

    def policy(obs):
        x = th.from_numpy(obs).cuda()
        with th.no_grad():
            a, _ = actor(x)
        return a

    return len(collect(PointEnv(), policy, Replay()).data)


def case_policy_action_as_array():
    actor = GaussianActor().cuda()

    @th.no_grad()
    def policy(obs):
        a, logp = actor(th.as_tensor(obs, device="cuda"))
        return a.clamp(-1, 1).cpu().numpy()

    buf = collect(PointEnv(), policy, Replay())
    return buf.sample(3).action.shape


def case_fixed_std_actor():
    actor = GaussianActor(learn_std=False).cuda()
    obs = th.randn(3, 4).cuda()
    return actor(obs)


def case_squashed_actor_plain_scale():
    low, high = -2 * th.ones(2), th.ones(2)
    actor = SquashedActor(low, high)
    a0, _ = actor(th.randn(3, 4))
    actor = actor.to("cuda:0")
    a1, logp = actor(th.randn(3, 4, device="cuda:0"))
    return a0, a1, logp


def case_gae_with_scalar_bootstrap():
    rew, val = th.rand(5, device="cuda"), th.rand(5, device="cuda")
    adv = discount(rew, val)
    again = vectorized_discount(rew, val)
    return (adv - again).abs().max().item()


def case_n_step_on_rollout():
    roll = Rollout.empty(5, 4, device="cuda")
    ret = n_step_returns(roll.reward)
    critic = mlp([4, 8, 1]).cuda()
    tail = critic(roll.obs[-1:]).squeeze()
    total = ret + 0.9 * tail.cpu()
    return total, n_step_returns(roll.value, tail=tail)


def case_rollout_rewards_on_host():
    actor, critic = GaussianActor().cuda(), mlp([4, 8, 1]).cuda()
    roll = Rollout.empty(4, 4, device="cuda")
    for t in range(4):
        obs = th.randn(4)
        a, logp = actor(obs.cuda())
        roll.write(t, obs=obs, logp=logp.detach(), reward=a.sum().item())
    losses = []
    for obs, logp, value, reward in roll.minibatches(2):
        pred = critic(obs).squeeze(-1)
        losses.append(F.mse_loss(pred, reward))  # raises
    return losses


def case_normalizer_between_eval_and_train():
    norm = RunningNorm()
    warm = norm(th.randn(8, 4))
    for dev in ("cuda:0", "cuda:0"):
        norm(th.randn(3, 4, device=dev))
    return warm


def case_normalizer_moved():
    norm = RunningNorm()
    norm(th.randn(8, 4))
    x = th.randn(3, 4, device="cuda:2")
    norm.to(x.device)
    y = norm(x) + norm(x, update=False)
    return y.sum().item()


def case_temperature_default_device():
    actor = GaussianActor().cuda()
    temp = AutoTemperature()
    obs = th.randn(3, 4, device="cuda")
    a, logp = actor(obs)
    temp.update(logp.cpu())
    penalty = temp.alpha * logp  # raises
    return (penalty - a.sum(-1)).mean()


def case_population_members_on_cards():
    population = [QNet().to(f"cuda:{i}") for i in range(th.cuda.device_count())]
    champion = max(population, key=lambda m: m.body[0].weight.sum().item())
    for m in population:
        m.load_state_dict(champion.state_dict())
    polyak(population[0], copy.deepcopy(population[0]))
    outs = [m(th.ones(1, 4).to(next(m.parameters()).device)).cpu() for m in population]
    return th.cat(outs).std(0)


def case_population_soft_update_across_cards():
    first, *rest = [QNet().cuda(i) for i in range(3)]
    for m in rest:
        polyak(m, m)
    polyak(rest[0], first)
    return first
