"""Indexing, scattering, distributions, numpy and other numerical work."""
import itertools
import math
import operator
import random
from collections import deque
from functools import reduce

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Bernoulli, Categorical, Independent, Normal, kl_divergence

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class ReplayBuffer:
    def __init__(self, capacity=64):
        self.memory = deque(maxlen=capacity)

    def push(self, *transition):
        self.memory.append(transition)

    def sample(self, size):
        rows = random.sample(self.memory, size)
        state, action, reward, following = map(np.stack, zip(*rows))  # raises
        return (
            torch.as_tensor(state, dtype=torch.float32, device=device),
            torch.as_tensor(action, device=device),
            torch.as_tensor(reward, dtype=torch.float32, device=device),
            torch.as_tensor(following, dtype=torch.float32, device=device),
        )


class Walk:
    """A random walk that ends by itself."""

    def reset(self):
        self.position = np.zeros(3, dtype=np.float32)
        return self.position.copy()

    def step(self, action):
        self.position[action % 3] += 1.0 if action < 3 else -1.0
        return self.position.copy(), float(-np.abs(self.position).sum())


def _play(q, memory, steps, act):
    env = Walk()
    state = env.reset()
    for _ in range(steps):
        with torch.no_grad():
            values = q(torch.from_numpy(state).to(device).unsqueeze(0))
        action = act(values)
        following, reward = env.step(action)
        memory.push(state, action, reward, following)
        state = following


def _temporal_difference(q, target, batch, gamma=0.9):
    state, action, reward, following = batch
    chosen = q(state).gather(1, action.view(-1, 1)).squeeze(1)
    with torch.no_grad():
        wanted = reward + gamma * target(following).max(1)[0]
    return F.smooth_l1_loss(chosen, wanted)


def case_q_learning():
    q, target = nn.Linear(3, 6).to(device), nn.Linear(3, 6).to(device)
    target.load_state_dict(q.state_dict())
    memory = ReplayBuffer()
    _play(q, memory, 20, lambda values: values.argmax(1).item())
    _temporal_difference(q, target, memory.sample(8)).backward()


def case_q_learning_tensor_actions():
    q = nn.Linear(3, 6).to(device)
    memory = ReplayBuffer()
    _play(q, memory, 20, lambda values: Categorical(logits=values).sample().squeeze())
    _temporal_difference(q, q, memory.sample(8)).backward()


def _returns(rewards, gamma=0.9):
    values = itertools.accumulate(reversed(rewards), lambda total, r: r + gamma * total)
    return torch.tensor(list(values)[::-1])


def _episode(policy, length=6):
    logs, rewards, state = [], [], torch.zeros(4, device=device)
    for _ in range(length):
        action = (chosen := Bernoulli(logits=policy(state))).sample()
        logs.append(chosen.log_prob(action).sum())
        rewards.append(1.0 if action.item() else -0.5)
        state = torch.roll(state, 1) + action
    return logs, rewards


def case_policy_gradient():
    policy = nn.Linear(4, 1).to(device)
    logs, rewards = _episode(policy)
    returns = _returns(rewards)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = -sum(log * value for log, value in zip(logs, returns))
    loss.backward()


def case_policy_gradient_stacked():
    policy = nn.Linear(4, 1).to(device)
    logs, rewards = _episode(policy)
    returns = _returns(rewards)
    returns = returns.sub_(returns.mean()).div_(returns.std().add(1e-6))
    loss = -torch.stack(logs).mul(returns).sum()  # raises
    loss.backward()


class GraphLayer(nn.Module):
    def __init__(self, inputs, outputs, normalise=False):
        super().__init__()
        self.fc = nn.Linear(inputs, outputs)
        self.normalise = normalise

    def forward(self, x, edges):
        source, target = edges
        messages = self.fc(x)[source]
        total = messages.new_zeros(len(x), messages.size(1)).index_add_(0, target, messages)
        if self.normalise:
            degree = torch.zeros(len(x)).scatter_add_(0, target, torch.ones(target.shape))  # raises
            total = total / degree.clamp(min=1).unsqueeze(-1)
        return total


def _ring(n=5):
    nodes = torch.arange(n)
    return torch.stack([torch.cat([nodes, nodes]), torch.cat([nodes.roll(1), nodes.roll(-1)])])


def case_graph_sum():
    layers = nn.ModuleList([GraphLayer(3, 4), GraphLayer(4, 2)]).to(device)
    edges = _ring().to(device)
    output = reduce(lambda x, layer: layer(x, edges).relu(), layers, torch.rand(5, 3, device=device))
    output.sum().backward()


def case_graph_mean():
    layer = GraphLayer(3, 4, normalise=True).to(device)
    layer(torch.rand(5, 3, device=device), _ring().to(device)).sum().backward()


def case_sparse_adjacency():
    edges = _ring()
    adjacency = torch.sparse_coo_tensor(edges, torch.ones(edges.size(1)), (5, 5)).to(device)
    x = torch.rand(5, 3, device=device)
    first = torch.sparse.mm(adjacency, x)
    second = torch.zeros_like(x).index_add_(0, edges[0].to(x.device), x[edges[1]])
    assert torch.allclose(first, second)


class Autoencoder(nn.Module):
    def __init__(self, dim=6, code=2):
        super().__init__()
        self.encoder = nn.Linear(dim, 2 * code)
        self.decoder = nn.Linear(code, dim)
        self.prior = Independent(Normal(torch.zeros(code), torch.ones(code)), 1)

    def forward(self, x):
        mean, log_scale = self.encoder(x).chunk(2, dim=-1)
        posterior = Independent(Normal(mean, log_scale.exp()), 1)
        return self.decoder(posterior.rsample()), posterior

    def bound(self, x, analytic=True, prior=None):
        output, posterior = self(x)
        prior = prior or self.prior
        if analytic:
            divergence = kl_divergence(posterior, prior)  # raises
        else:
            code = posterior.rsample()
            divergence = posterior.log_prob(code) - prior.log_prob(code)
        return F.mse_loss(output, x, reduction="none").sum(-1).add(divergence).mean()


def case_autoencoder_unit_prior():
    model = Autoencoder().to(device)
    zero = torch.zeros(2, device=device)
    x = torch.rand(4, 6).to(device)
    prior = Independent(Normal(zero, zero + 1), 1)
    (model.bound(x, prior=prior) + model.bound(x, False, Independent(Normal(zero, torch.ones_like(zero)), 1))).backward()


def case_autoencoder():
    model = Autoencoder().to(device)
    model.bound(torch.rand(4, 6).to(device)).backward()


def case_diffusion_schedule():
    betas = torch.linspace(1e-4, 0.02, 10)
    kept = torch.cumprod(1 - betas, dim=0)
    x = torch.rand(3, 4, device=device)
    t = torch.randint(0, len(betas), (len(x),))
    level = kept[t].to(x.device).unsqueeze(1)
    noisy = level.sqrt() * x + (1 - level).sqrt() * torch.randn_like(x)
    for step in reversed(range(len(betas))):
        noisy = (noisy - betas[step] * x) / (1 - betas[step]).sqrt()
    assert noisy.shape == x.shape


def case_diffusion_schedule_drawn():
    betas = torch.linspace(1e-4, 0.02, 10)
    tables = {"kept": torch.cumprod(1 - betas, dim=0), "snr": betas.reciprocal()}
    x = torch.rand(3, 4, device=device)
    t = torch.randint(len(betas), (x.size(0),), device=x.device)
    levels = {name: table.gather(0, t) for name, table in tables.items() if name != "snr"}  # raises
    print(x * levels["kept"].view(-1, 1))


def _kmeans(x, k=3, rounds=3, seed=0):
    rng = torch.Generator().manual_seed(seed)
    centres = x[torch.randperm(len(x), generator=rng)[:k]]
    for _ in range(rounds):
        nearest = torch.cdist(x, centres).argmin(dim=1)
        counts = torch.bincount(nearest, minlength=k).clamp(min=1)
        centres = torch.zeros_like(centres).index_add_(0, nearest, x) / counts[:, None]
    return centres, nearest


def case_clusters():
    centres, nearest = _kmeans(torch.rand(20, 2).to(device))
    host = nearest.cpu().numpy()
    sizes = {int(c): int((host == c).sum()) for c in np.unique(host)}
    assert sum(sizes.values()) == 20 and centres.tolist()


def case_cluster_names():
    names = np.array(["low", "middle", "high"])
    palette = torch.rand(3, 3)
    centres, nearest = _kmeans(torch.rand(20, 2).to(device))
    order = centres.norm(dim=1).argsort()
    print(names[order.cpu().numpy()])
    print(palette[nearest].mean(0))  # raises


def case_output_buffers():
    x = torch.randn(6, 4, device=device)
    gram = torch.empty(4, 4, device=x.device)
    spectrum = []
    for rows in x.split(3):
        torch.matmul(rows.t(), rows, out=gram)
        spectrum.append(torch.linalg.eigvalsh(gram.cpu()).numpy())
    assert np.stack(spectrum).shape == (2, 4)


def case_output_buffers_reused():
    x = torch.randn(6, 4, device=device)
    total, scratch = torch.zeros(4), x.new_empty(4)
    for rows in x.split(2):
        torch.sum(rows, dim=0, out=scratch)
        total.copy_(scratch)
    for rows in x.split(2):
        torch.amax(rows, 0, out=scratch)
        torch.maximum(scratch, total, out=scratch)  # raises


def case_seeded_noise():
    rng = torch.Generator()
    rng.manual_seed(3)
    noise = torch.randn(4, 2, generator=rng).to(device)
    again = torch.randn(4, 2, generator=rng.manual_seed(3), pin_memory=True).to(device, non_blocking=True)
    assert torch.equal(noise, again)


def case_seeded_choice():
    rng = torch.Generator().manual_seed(3)
    logits = torch.randn(4, 5, generator=rng).to(device)
    picks = torch.multinomial(logits.softmax(-1), 1, generator=rng)  # raises
    print(picks.flatten().tolist())


def case_host_table_filled():
    table, seen = torch.zeros(10, 3), torch.zeros(10, dtype=torch.bool)
    layer = nn.Linear(2, 3).to(device)
    for ids in torch.randperm(10).split(4):
        with torch.no_grad():
            features = layer(torch.rand(len(ids), 2, device=device))
        for i, row in zip(ids.tolist(), features):
            table[i] = row
        seen[ids] = True
    assert seen.all() and math.isfinite(table.sum())


def case_host_table_filled_at_once():
    table = torch.zeros(10, 3)
    layer = nn.Linear(2, 3).to(device)
    for ids in torch.randperm(10).split(4):
        with torch.no_grad():
            features = layer(torch.rand(len(ids), 2, device=device))
        table[ids] = features  # raises
    print(table.mean())


def case_histogram_edges():
    values = torch.rand(30, device=device)
    edges = np.quantile(values.cpu(), [0.25, 0.5, 0.75])
    parts = torch.bucketize(values, torch.as_tensor(edges, dtype=values.dtype, device=values.device))
    masks = [parts == i for i in range(4)]
    assert reduce(operator.add, (m.sum() for m in masks)).item() == 30


def case_scores_summary():
    model = nn.Linear(2, 1).to(device)
    scores = [model(torch.rand(3, 2, device=device)).detach().mean() for _ in range(4)]
    print(f"{max(scores):.3f} {sum(scores) / len(scores):.3f} {sorted(scores)[0].item():.3f}")
    print(np.percentile(scores, [5, 95]))  # raises
