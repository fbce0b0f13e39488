import copy

import torch
import torch.nn.functional as F
from torch.distributions import Normal

from agents.common import ReplayBuffer, mlp


class SAC:
    def __init__(self, env, device, options):
        self.env, self.device, self.options = env, device, options
        o, a = env.observation_dim, env.action_dim
        self.policy = mlp(o, 16, 2 * a).to(device)
        self.critics = [mlp(o + a, 16, 1).to(device) for _ in range(2)]
        self.targets = copy.deepcopy(self.critics)
        self.log_alpha = torch.zeros((), requires_grad=True)
        self.scale = torch.ones(a) * 2.0
        self.buffer = ReplayBuffer(64, o, a, device)
        lr = options["lr"]
        self.policy_optimizer = torch.optim.Adam(self.policy.parameters(), lr=lr)
        self.critic_optimizer = torch.optim.Adam([p for c in self.critics for p in c.parameters()], lr=lr)
        self.alpha_optimizer = torch.optim.Adam([self.log_alpha], lr=lr)

    def act(self, obs):
        mean, log_std = self.policy(obs).chunk(2, dim=-1)
        dist = Normal(mean, log_std.clamp(-4, 1).exp())
        raw = dist.rsample()
        action = raw.tanh()
        logp = (dist.log_prob(raw) - (1 - action.pow(2) + 1e-6).log()).sum(-1)
        if self.options["rescale"]:
            action = action * self.scale  # raises
        return action, logp

    def q(self, critics, obs, act):
        return torch.stack([critic(torch.cat([obs, act], -1)).squeeze(-1) for critic in critics])

    def collect(self, steps):
        obs = self.env.reset()
        for _ in range(steps):
            with torch.no_grad():
                action, _ = self.act(torch.from_numpy(obs).to(self.device))
            action = action.cpu().numpy()
            following, reward, done = self.env.step(action)
            self.buffer.add(obs=obs, act=action, rew=reward, next=following, done=done)
            obs = following

    def update(self):
        self.collect(self.options["steps"])
        batch, index = self.buffer.sample(8, self.options["prioritized"])
        alpha = self.log_alpha.exp().detach()
        with torch.no_grad():
            action, logp = self.act(batch["next"])
            target = self.q(self.targets, batch["next"], action).min(0).values - alpha * logp
            target = batch["rew"] + 0.99 * (1 - batch["done"]) * target
        values = self.q(self.critics, batch["obs"], batch["act"])
        critic_loss = F.mse_loss(values, target.expand_as(values))
        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()
        if self.options["prioritized"]:
            self.buffer.reprioritize(index, (values.mean(0) - target).detach())

        action, logp = self.act(batch["obs"])
        policy_loss = (alpha * logp - self.q(self.critics, batch["obs"], action).min(0).values).mean()
        self.policy_optimizer.zero_grad()
        policy_loss.backward()
        self.policy_optimizer.step()

        alpha_loss = -(self.log_alpha * (logp.detach().cpu() - self.env.action_dim)).mean()
        self.alpha_optimizer.zero_grad()
        alpha_loss.backward()
        self.alpha_optimizer.step()
        for target, source in zip(self.targets, self.critics):
            for p, q in zip(target.parameters(), source.parameters()):
                p.data.mul_(0.99).add_(0.01 * q.data)
        return {"critic": critic_loss.item(), "alpha": alpha.item(), "reward": batch["rew"].mean().item()}
