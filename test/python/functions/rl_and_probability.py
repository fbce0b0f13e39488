"""Reinforcement learning, Monte Carlo, variational models, Gaussian processes, optimisers."""
import collections
import math
import random
from typing import Callable, NamedTuple

import numpy as np
import torch
import torch.distributions as td
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

Transition = collections.namedtuple("Transition", "obs action reward next_obs done")


class Env:
    """Point on a line, in numpy."""

    def __init__(self, seed=0):
        self.rng = np.random.RandomState(seed)

    def reset(self):
        self.s = self.rng.randn(3).astype(np.float32)
        return self.s

    def step(self, a):
        self.s = self.s + 0.1 * (float(a) - 0.5)
        return self.s.astype(np.float32), float(-np.abs(self.s).sum()), bool(self.rng.rand() < 0.1), {}


class Replay:
    def __init__(self, size=32):
        self.data = collections.deque(maxlen=size)

    def push(self, *fields):
        self.data.append(Transition(*fields))

    def sample(self, n, where=None):
        batch = Transition(*zip(*random.sample(self.data, n)))
        obs = torch.as_tensor(np.stack(batch.obs), device=where)
        nxt = torch.as_tensor(np.stack(batch.next_obs), device=where)
        action = torch.tensor(batch.action, device=where)
        reward = torch.tensor(batch.reward, device=where)
        done = torch.tensor(batch.done, dtype=torch.float32, device=where)
        return Transition(obs, action, reward, nxt, done)


class QNet(nn.Module):
    def __init__(self, actions=2):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, actions))

    def forward(self, obs):
        return self.body(obs)

    def act(self, obs, eps=0.1):
        if random.random() < eps:
            return random.randrange(2)
        return self(torch.from_numpy(obs)[None].to(next(self.parameters()).device)).argmax(1).item()


def _filled(q, n=16):
    env, memory = Env(), Replay()
    obs = env.reset()
    for _ in range(n):
        a = q.act(obs)
        nxt, r, done, _ = env.step(a)
        memory.push(obs, a, r, nxt, done)
        obs = env.reset() if done else nxt
    return memory


def _td_target(q, batch, gamma=0.9):
    with torch.no_grad():
        best = q(batch.next_obs).max(1).values
    return batch.reward + gamma * (1 - batch.done) * best  # raises


def q_learning_step():
    q = QNet().to(device)
    batch = _filled(q).sample(4, device)
    target = _td_target(q, batch)
    value = q(batch.obs).gather(1, batch.action[:, None]).squeeze(1)
    nn.functional.smooth_l1_loss(value, target).backward()
    return value.mean().item()


def q_learning_step_with_observations_sent():
    q = QNet().to(device)
    batch = _filled(q).sample(4)
    batch = batch._replace(obs=batch.obs.to(device), next_obs=batch.next_obs.to(device))
    return _td_target(q, batch)


def q_learning_step_with_all_sent():
    q = QNet().to(device)
    batch = Transition(*(f.to(device) for f in _filled(q).sample(4)))
    return _td_target(q, batch).shape


def q_learning_priorities():
    q = QNet().to(device)
    memory = _filled(q)
    priority = torch.ones(len(memory.data))
    at = torch.multinomial(priority, 4)
    obs = torch.stack([torch.from_numpy(memory.data[i].obs) for i in at]).to(device)
    error = q(obs).max(1).values.detach().abs()
    priority[at] = error.cpu()
    weight = (priority[at].sum() / priority[at]).to(error.device)
    return (weight * error).sum().item()


def q_learning_importance_weights():
    q = QNet().to(device)
    memory = _filled(q)
    priority = torch.ones(len(memory.data))
    at = torch.multinomial(priority, 4)
    obs = torch.stack([torch.from_numpy(memory.data[i].obs) for i in at]).to(device)
    error = q(obs).max(1).values.detach().abs()
    weight = (len(priority) * priority[at] / priority.sum()) ** -0.4
    return torch.mean(weight * error)  # raises


class Rollout:
    """Fixed storage of an on-policy agent."""

    def __init__(self, steps, envs, place="cpu"):
        self.rewards = torch.zeros(steps, envs, device=place)
        self.values = torch.zeros(steps + 1, envs, device=place)
        self.alive = torch.ones(steps, envs, device=place)

    def record(self, t, reward, value, alive):
        self.rewards[t].copy_(reward)
        self.values[t].copy_(value)
        self.alive[t].copy_(alive)

    def advantages(self, last, gamma=0.99, lam=0.95):
        self.values[-1] = last
        gae, out = torch.zeros_like(last), []
        for t in reversed(range(len(self.rewards))):
            delta = self.rewards[t] + gamma * self.values[t + 1] * self.alive[t] - self.values[t]
            gae = delta + gamma * lam * self.alive[t] * gae  # raises
            out.insert(0, gae)
        return torch.stack(out)


def _rolled(place):
    critic = nn.Linear(3, 1).to(device)
    store = Rollout(3, 2, place)
    for t in range(3):
        obs = torch.randn(2, 3)
        with torch.no_grad():
            store.record(t, torch.rand(2), critic(obs.to(device)).squeeze(1), torch.ones(2))
    return store, critic


def rollout_advantages_on_device():
    store, critic = _rolled(device)
    return store.advantages(critic(torch.randn(2, 3, device=device)).squeeze(1).detach()).shape


def rollout_advantages_default_storage():
    store, critic = _rolled("cpu")
    return store.advantages(critic(torch.randn(2, 3, device=device)).squeeze(1).detach()).shape


def rollout_advantages_default_storage_and_value():
    store, critic = _rolled("cpu")
    return store.advantages(critic(torch.randn(2, 3, device=device)).squeeze(1).detach().cpu()).shape


def rollout_actions_for_numpy_env():
    policy = nn.Linear(3, 2).to(device)
    env = Env()
    total = 0.0
    obs = torch.from_numpy(env.reset()).to(device)
    for _ in range(3):
        action = td.Categorical(logits=policy(obs)).sample()
        nxt, reward, _, _ = env.step(action)
        obs = torch.as_tensor(nxt, device=obs.device)
        total += reward
    return total


def rollout_continuous_actions_for_numpy_env():
    policy = nn.Linear(3, 1).to(device)
    env = Env()
    obs = torch.from_numpy(env.reset()).to(device)
    with torch.no_grad():
        action = td.Normal(policy(obs), 0.1).sample()
    clipped = np.clip(np.asarray(action), -1, 1)  # raises
    return env.step(clipped[0])


# ---- distributions


class Gaussian(nn.Module):
    def __init__(self, dim, learned=True):
        super().__init__()
        self.mu = nn.Linear(3, dim)
        self.log_std = nn.Parameter(torch.zeros(dim)) if learned else torch.zeros(dim)

    def forward(self, obs):
        return td.Independent(td.Normal(self.mu(obs), self.log_std.exp()), 1)

    def surprise(self, obs, action):
        mean = self.mu(obs)
        z = (action - mean) / self.log_std.exp()  # raises
        return 0.5 * z.pow(2).sum(-1)


def policy_log_prob():
    pi = Gaussian(2).to(device)
    obs = torch.randn(4, 3, device=device)
    d = pi(obs)
    a = d.rsample()
    return (d.log_prob(a) - d.entropy()).mean().item() + pi.surprise(obs, a).sum().item()


def policy_surprise_with_constant_deviation():
    pi = Gaussian(2, learned=False).to(device)
    return pi.surprise(torch.randn(4, 3, device=device), torch.zeros(4, 2, device=device))


def divergence_from_standard_normal():
    q = td.Normal(torch.zeros(2, 3, device=device), torch.ones(2, 3, device=device))
    p = td.Normal(torch.zeros(3), torch.ones(3))
    return td.kl_divergence(q, p).sum()  # raises


def divergence_from_scalar_normal():
    q = td.Normal(torch.zeros(2, 3, device=device), torch.ones(2, 3, device=device))
    p = td.Normal(0.0, 1.0)
    return td.kl_divergence(q, p).sum().item()


class VAE(nn.Module):
    def __init__(self, dim=6, z=2):
        super().__init__()
        self.enc, self.dec, self.z = nn.Linear(dim, 2 * z), nn.Linear(z, dim), z

    def encode(self, x):
        mu, log_var = self.enc(x).chunk(2, -1)
        return mu + torch.randn_like(mu) * (0.5 * log_var).exp(), mu, log_var

    def forward(self, x):
        z, mu, log_var = self.encode(x)
        kl = -0.5 * (1 + log_var - mu ** 2 - log_var.exp()).sum(-1)
        return ((self.dec(z) - x) ** 2).sum(-1) + kl

    def sample(self, n, **where):
        return self.dec(torch.randn(n, self.z, **where))  # raises


def vae_bound():
    net = VAE().to(device)
    return net(torch.randn(4, 6, device=device)).mean().item()


def vae_samples():
    net = VAE().to(device).eval()
    with torch.no_grad():
        return net.sample(3)


def vae_samples_beside_weights():
    net = VAE().to(device).eval()
    with torch.no_grad():
        return net.sample(3, device=net.dec.weight.device).shape


def vae_interpolates():
    net = VAE().to(device)
    a, b = (net.encode(torch.randn(1, 6, device=device))[0] for _ in range(2))
    steps = torch.linspace(0, 1, 5)
    return net.dec(torch.cat([a + s * (b - a) for s in steps])).shape


def vae_interpolates_at_once():
    net = VAE().to(device)
    a, b = (net.encode(torch.randn(1, 6, device=device))[0] for _ in range(2))
    steps = torch.linspace(0, 1, 5)[:, None]
    return net.dec(a + steps * (b - a))  # raises


# ---- Monte Carlo


def _hmc(log_prob: Callable, start, steps=3, eps=0.1, seed=None):
    gen = None if seed is None else torch.Generator(device=start.device).manual_seed(seed)
    x, taken = start, 0

    def grad(at):
        at = at.detach().requires_grad_()
        return torch.autograd.grad(log_prob(at).sum(), at)[0]

    for _ in range(steps):
        p = torch.empty_like(x).normal_(generator=gen)
        energy = log_prob(x) - 0.5 * p.pow(2).sum(-1)
        y = x + eps * (p + 0.5 * eps * grad(x))
        p2 = p + 0.5 * eps * (grad(x) + grad(y))
        accept = torch.rand(len(x), device=x.device) < (log_prob(y) - 0.5 * p2.pow(2).sum(-1) - energy).exp()
        x = torch.where(accept[:, None], y, x).detach()
        taken += accept.sum().item()
    return x, taken


def chains_of_closure():
    scale = torch.tensor([1.0, 2.0], device=device)
    x, taken = _hmc(lambda at: -(at / scale).pow(2).sum(-1) / 2, torch.zeros(4, 2, device=device), seed=1)
    return x.norm().item(), taken


def chains_of_closure_over_data():
    data = torch.randn(5, 2)

    def log_prob(theta):
        return -torch.cdist(theta, data).pow(2).sum(1) / 2  # raises

    return _hmc(log_prob, torch.zeros(4, 2, device=device))


def chains_of_distribution():
    target = td.MultivariateNormal(torch.zeros(2, device=device), torch.eye(2, device=device))
    return _hmc(target.log_prob, torch.zeros(4, 2, device=device))[0].shape


def importance_resampling():
    particles = torch.randn(8, 2, device=device)
    log_w = -particles.pow(2).sum(1)
    w = log_w.softmax(0).cpu()
    u = (torch.arange(8) + torch.rand(())) / 8
    at = torch.searchsorted(w.cumsum(0), u).clamp(max=7)
    return particles[at].mean(0).tolist()


def importance_resampling_of_device_weights():
    particles = torch.randn(8, 2, device=device)
    w = (-particles.pow(2).sum(1)).softmax(0)
    u = (torch.arange(8) + 0.5) / 8
    at = torch.searchsorted(w.cumsum(0), u)  # raises
    return particles[at.clamp(max=7)]


# ---- linear algebra


class GP:
    def __init__(self, x, y, length=1.0, noise=1e-2, jitter=None):
        self.x, self.y = x, y
        self.length = torch.tensor(length)
        k = self.kernel(x, x)
        self.chol = torch.linalg.cholesky(k + (jitter if jitter is not None else noise * torch.eye(len(x), device=x.device)))  # raises
        self.alpha = torch.cholesky_solve(y[:, None], self.chol)

    def kernel(self, a, b):
        return torch.exp(-0.5 * torch.cdist(a / self.length, b / self.length) ** 2)

    def predict(self, at):
        cross = self.kernel(at, self.x)
        solved = torch.linalg.solve_triangular(self.chol, cross.t(), upper=False)
        return (cross @ self.alpha).squeeze(1), 1 - solved.pow(2).sum(0)


def process_on_device():
    x = torch.linspace(0, 1, 5, device=device)[:, None]
    mean, var = GP(x, x.squeeze(1).sin()).predict(x + 0.1)
    return mean.sum().item(), var.min().item()


def process_with_jitter_matrix():
    x = torch.linspace(0, 1, 5, device=device)[:, None]
    return GP(x, x.squeeze(1).sin(), jitter=1e-3 * torch.eye(5)).chol


def process_with_jitter_number():
    x = torch.linspace(0, 1, 5, device=device)[:, None]
    return GP(x, x.squeeze(1).sin() + 1, jitter=torch.tensor(1e-6).double() * torch.eye(5).to(x)).chol.shape


def ridge_with_identity():
    a, b = torch.randn(6, 3, device=device), torch.randn(6, 1, device=device)
    gram = a.t() @ a
    gram.diagonal().add_(0.1)
    return torch.linalg.solve(gram, a.t() @ b).shape


def ridge_with_targets():
    a, b = torch.randn(6, 3, device=device), torch.randn(6, 1)
    gram = a.t() @ a + 0.1 * torch.eye(3).to(a.device)
    return torch.linalg.solve(gram, a.t().cpu() @ b)  # raises


# ---- optimisers


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, betas=(0.9, 0.99), like=True):
        super().__init__(params, dict(lr=lr, betas=betas))
        self.like = like

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in filter(lambda p: p.grad is not None, group["params"]):
                state = self.state[p]
                if not state:
                    state["m"] = torch.zeros_like(p) if self.like else torch.zeros(p.shape)
                    state["t"] = torch.tensor(0.0)
                state["t"] += 1
                update = (state["m"] * b1 + p.grad * (1 - b1)).sign_()  # raises
                p.add_(update * group["lr"] / state["t"].sqrt(), alpha=-1)
                state["m"].mul_(b2).add_(p.grad, alpha=1 - b2)


def _optimised(**options):
    net = nn.Linear(3, 1).to(device)
    opt = Lion(net.parameters(), **options)
    for _ in range(2):
        opt.zero_grad()
        net(torch.ones(2, 3, device=device)).pow(2).sum().backward()
        opt.step()
    return net.weight.norm().item()


def lion_two_steps():
    return _optimised()


def lion_with_zeros():
    return _optimised(like=False)


def power_iteration():
    a = torch.randn(4, 4, device=device)
    v = torch.ones(4).to(a)
    for _ in range(5):
        v = a @ v
        v /= v.norm() + torch.tensor(1e-8)
    return torch.dot(v, a @ v).item()
