from collections import namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

Batch = namedtuple("Batch", "obs act rew next_obs done")


def mlp(sizes, act=nn.ReLU):
    layers = []
    for i in range(len(sizes) - 1):
        layers += [nn.Linear(sizes[i], sizes[i + 1]), act()]
    return nn.Sequential(*layers[:-1])


class ReplayBuffer(object):
    def __init__(self, obs_dim, act_dim, size, device="cpu"):
        self.obs = np.zeros((size, obs_dim), dtype=np.float32)
        self.next_obs = np.zeros((size, obs_dim), dtype=np.float32)
        self.act = np.zeros((size, act_dim), dtype=np.float32)
        self.rew = np.zeros((size, 1), dtype=np.float32)
        self.done = np.zeros((size, 1), dtype=np.float32)
        self.ptr, self.size, self.max_size = 0, 0, size
        self.device = device

    def add(self, o, a, r, o2, d):
        i = self.ptr
        self.obs[i], self.act[i], self.rew[i], self.next_obs[i], self.done[i] = o, a, r, o2, d
        self.ptr = (i + 1) % self.max_size
        self.size = min(self.size + 1, self.max_size)

    def _gather(self, idx):
        obs, act, rew, nxt = (torch.as_tensor(x[idx]).to(self.device) for x in (self.obs, self.act, self.rew, self.next_obs))
        return Batch(obs, act, rew, nxt, torch.as_tensor(self.done[idx]))

    def sample(self, n):
        return self._gather(np.random.randint(0, self.size, size=n))


class PrioritizedBuffer(ReplayBuffer):
    def __init__(self, *args, alpha=0.6, **kwargs):
        super().__init__(*args, **kwargs)
        self.alpha = alpha
        self.prio = np.ones(self.max_size, dtype=np.float32)

    def sample(self, n, beta=0.4):
        p = self.prio[:self.size] ** self.alpha
        p = p / p.sum()
        idx = np.random.choice(self.size, n, p=p)
        w = torch.from_numpy((self.size * p[idx]) ** -beta).to(self.device)
        return self._gather(idx), idx, w / w.max()

    def update(self, idx, td_error):
        self.prio[idx] = np.abs(td_error.detach().squeeze(-1)) + 1e-6  # raises

    def set_priority(self, idx, value):
        self.prio[idx] = value.detach().abs().cpu().numpy()


class RolloutBuffer(object):
    def __init__(self, steps, envs, obs_dim, device):
        self.obs = torch.zeros(steps, envs, obs_dim, device=device)
        self.rew = torch.zeros(steps, envs, device=device)
        self.val = torch.zeros(steps, envs, device=device)
        self.done = torch.zeros(steps, envs)
        self.t = 0

    def insert(self, obs, rew, val, done):
        for name, new in dict(obs=obs, rew=rew, val=val, done=done).items():
            getattr(self, name)[self.t].copy_(new)
        self.t += 1

    def gae(self, last_val, gamma=0.99, lam=0.95):
        adv, last = torch.zeros_like(self.rew), 0
        for t in reversed(range(self.t)):
            nxt = last_val if t == self.t - 1 else self.val[t + 1]
            mask = 1.0 - self.done[t]
            delta = self.rew[t] + gamma * nxt * mask - self.val[t]  # raises
            last = delta + gamma * lam * mask * last
            adv[t] = last
        return adv


class RunningNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        self.count = torch.tensor(1e-4)

    def forward(self, x):
        if self.training:
            self.count = self.count + len(x)
            self.mean = self.mean + (x.mean(0) - self.mean) * len(x) / self.count
        return x - self.mean


class Actor(nn.Module):
    def __init__(self, obs_dim, low, high):
        super().__init__()
        self.net = mlp([obs_dim, 16, 2 * len(low)])
        self.scale = torch.as_tensor((high - low) / 2.0)
        self.bias = torch.as_tensor((high + low) / 2.0)

    def to(self, device):
        self.scale = self.scale.to(device)
        return super().to(device)

    def dist(self, obs):
        mu, log_std = self.net(obs).chunk(2, dim=-1)
        return Normal(mu, log_std.clamp(-5, 2).exp())

    def forward(self, obs):
        d = self.dist(obs)
        u = d.rsample()
        logp = (d.log_prob(u) - torch.log(1 - torch.tanh(u) ** 2 + 1e-6)).sum(-1, keepdim=True)
        return torch.tanh(u) * self.scale + self.bias, logp  # raises


class DQNAgent(object):
    def __init__(self, obs_dim, n_act, device):
        self.device, self.n_act = device, n_act
        self.q = mlp([obs_dim, 16, n_act]).to(device)
        self.target = mlp([obs_dim, 16, n_act]).to(device)
        self.log_alpha = torch.zeros(1, requires_grad=True)

    @torch.no_grad()
    def act(self, obs):
        obs = torch.as_tensor(obs, dtype=torch.float32, device=self.device)
        return self.q(obs).argmax(-1).cpu().numpy()

    def act_softmax(self, obs):
        q = self.q(torch.as_tensor(obs, dtype=torch.float32).to(self.device))
        probs = F.softmax(q, dim=-1).detach().numpy()  # raises
        return np.random.choice(self.n_act, p=probs / probs.sum())

    def td_loss(self, batch, gamma=0.99):
        with torch.no_grad():
            nxt = self.target(batch.next_obs).max(1, keepdim=True)[0]
            y = batch.rew + gamma * (1 - batch.done) * nxt  # raises
        return F.smooth_l1_loss(self.q(batch.obs).gather(1, batch.act.long()), y)

    def soft_loss(self, obs):
        logp = F.log_softmax(self.q(obs), dim=-1)
        alpha = self.log_alpha.exp()
        return -(alpha * logp).sum(-1).mean()  # raises

    def sync(self, tau=0.01):
        for p, tp in zip(self.q.parameters(), self.target.parameters()):
            tp.data.mul_(1 - tau).add_(p.data, alpha=tau)
