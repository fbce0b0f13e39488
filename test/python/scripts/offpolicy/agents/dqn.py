import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import globals as G


def mlp(sizes):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


@torch.no_grad()
def polyak(target, source, tau):
    for t, s in zip(target.parameters(), source.parameters()):
        t.lerp_(s, tau)


class DQN:
    def __init__(self, obs_dim, n_actions, args):
        self.args = args
        self.n_actions = n_actions
        self.q = self.network(obs_dim, n_actions).to(G.DEVICE)
        self.target = copy.deepcopy(self.q)
        self.opt = torch.optim.Adam(self.q.parameters(), lr=args.lr)
        self.epsilon = 0.3

    def network(self, obs_dim, n_actions):
        return mlp([obs_dim, 24, n_actions])

    def values(self, obs):
        return self.q(obs)

    @torch.no_grad()
    def act(self, obs, explore):
        if explore and np.random.rand() < self.epsilon:
            return np.random.randint(self.n_actions)
        return self.values(obs).argmax(-1).item()

    def bootstrap(self, batch):
        return self.target(batch.next_obs).max(-1).values

    def learn(self, batch):
        with torch.no_grad():
            goal = batch.reward + self.args.gamma * (1 - batch.done) * self.bootstrap(batch)
        q = self.q(batch.obs).gather(1, batch.action[:, None]).squeeze(1)
        error = goal - q
        each = F.smooth_l1_loss(q, goal, reduction='none') if self.args.huber else error ** 2
        loss = (each * batch.weight).mean()
        return self.update(loss, error.detach())

    def update(self, loss, priority):
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        polyak(self.target, self.q, self.args.tau)
        return {'loss': loss.item(), 'priority': priority}


class DoubleDQN(DQN):
    def bootstrap(self, batch):
        best = self.q(batch.next_obs).argmax(-1)
        rows = torch.arange(len(best))
        return self.target(batch.next_obs)[rows, best]
