import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

from .normalizer import RunningMeanStd


def mlp(i, o, hidden=16):
    return nn.Sequential(nn.Linear(i, hidden), nn.ReLU(), nn.Linear(hidden, o))


class Actor(nn.Module):
    def __init__(self, obs_dim, act_dim, low, high):
        super().__init__()
        self.net = mlp(obs_dim, 2 * act_dim)
        self.register_buffer("scale", torch.as_tensor((high - low) / 2))
        self.register_buffer("bias", torch.as_tensor((high + low) / 2))

    def forward(self, obs, deterministic=False):
        mean, log_std = self.net(obs).chunk(2, -1)
        dist = Normal(mean, log_std.clamp(-5, 2).exp())
        u = mean if deterministic else dist.rsample()
        a = torch.tanh(u)
        logp = (dist.log_prob(u) - torch.log(self.scale * (1 - a.pow(2)) + 1e-6)).sum(-1)
        return a * self.scale + self.bias, logp


class SAC:
    def __init__(self, env, device, gamma=0.99, tau=0.05):
        self.device, self.gamma, self.tau = torch.device(device), gamma, tau
        self.actor = Actor(env.obs_dim, env.act_dim, env.action_low, env.action_high).to(self.device)
        self.critics = nn.ModuleList([mlp(env.obs_dim + env.act_dim, 1) for _ in range(2)]).to(self.device)
        self.targets = copy.deepcopy(self.critics).requires_grad_(False)
        self.log_alpha = torch.zeros(1, requires_grad=True, device=self.device)
        self.target_entropy = -float(env.act_dim)
        self.normalizer = RunningMeanStd(env.obs_dim)
        self.opt = {"actor": torch.optim.Adam(self.actor.parameters(), 1e-3), "critic": torch.optim.Adam(self.critics.parameters(), 1e-3),
                    "alpha": torch.optim.Adam([self.log_alpha], 1e-3)}

    @torch.no_grad()
    def act(self, obs, deterministic=False):
        x = self.normalizer(torch.from_numpy(obs).unsqueeze(0))
        action, _ = self.actor(x.to(self.device), deterministic)
        return action.squeeze(0).cpu().numpy()

    def _q(self, critics, obs, act):
        x = torch.cat([obs, act], -1)
        return torch.stack([c(x).squeeze(-1) for c in critics]).min(0).values

    def update(self, batch):
        self.normalizer.update(batch["obs"])
        obs, nxt = self.normalizer(batch["obs"]), self.normalizer(batch["next_obs"])
        alpha = self.log_alpha.exp().detach()
        with torch.no_grad():
            a2, logp2 = self.actor(nxt)
            y = batch["rew"] + self.gamma * (1 - batch["done"]) * (self._q(self.targets, nxt, a2) - alpha * logp2)
        x = torch.cat([obs, batch["act"]], -1)
        critic_loss = sum(F.mse_loss(c(x).squeeze(-1), y) for c in self.critics)
        self._step("critic", critic_loss)
        a, logp = self.actor(obs)
        self._step("actor", (alpha * logp - self._q(self.critics, obs, a)).mean())
        self._step("alpha", -(self.log_alpha * (logp.detach() + self.target_entropy)).mean())
        for p, t in zip(self.critics.parameters(), self.targets.parameters()):
            t.data.lerp_(p.data, self.tau)
        return critic_loss.item()

    def _step(self, which, loss):
        self.opt[which].zero_grad()
        loss.backward()
        self.opt[which].step()
