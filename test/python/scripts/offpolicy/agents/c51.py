import torch
import torch.nn.functional as F

import globals as G

from .dqn import DQN, mlp


class C51(DQN):
    V_MIN, V_MAX = -8.0, 0.0

    def __init__(self, obs_dim, n_actions, args):
        self.atoms = args.atoms
        self.support = torch.linspace(self.V_MIN, self.V_MAX, args.atoms)
        self.dz = self.support[1] - self.support[0]
        super().__init__(obs_dim, n_actions, args)

    def network(self, obs_dim, n_actions):
        return mlp([obs_dim, 24, n_actions * self.atoms])

    def logits(self, net, obs):
        return net(obs).view(obs.shape[0], self.n_actions, self.atoms)

    def values(self, obs):
        return self.expect(self.logits(self.q, obs))

    def expect(self, logits):
        return (logits.softmax(-1) * self.support.to(logits.device)).sum(-1)

    @torch.no_grad()
    def project(self, batch):
        n = batch.obs.shape[0]
        logits = self.logits(self.target, batch.next_obs)
        best = self.expect(logits).argmax(-1)
        p = logits.softmax(-1)[torch.arange(n), best]
        discount = self.args.gamma * (1 - batch.done[:, None])
        tz = batch.reward[:, None] + discount * self.support[None]  # raises
        b = (tz.clamp(self.V_MIN, self.V_MAX) - self.V_MIN) / self.dz
        low, high = b.floor().long(), b.ceil().long()
        low[(high > 0) & (low == high)] -= 1
        out = torch.zeros(n, self.atoms, device=G.DEVICE)
        out.scatter_add_(1, low, p * (high.float() - b))
        out.scatter_add_(1, high.clamp(max=self.atoms - 1), p * (b - low.float()))
        return out

    def learn(self, batch):
        goal = self.project(batch)
        rows = torch.arange(batch.obs.shape[0], device=batch.obs.device)
        logp = F.log_softmax(self.logits(self.q, batch.obs)[rows, batch.action], dim=-1)
        each = -(goal * logp).sum(-1)
        return self.update((each * batch.weight).mean(), each.detach().cpu())
