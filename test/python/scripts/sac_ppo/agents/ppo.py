import torch
import torch.nn as nn
from torch.distributions import Normal

from agents.common import RunningNorm, mlp


class ActorCritic(nn.Module):
    def __init__(self, observation_dim, action_dim, hidden=16):
        super().__init__()
        self.actor = mlp(observation_dim, hidden, action_dim)
        self.critic = mlp(observation_dim, hidden, 1)
        self.log_std = nn.Parameter(torch.zeros(action_dim))

    def dist(self, obs):
        return Normal(self.actor(obs), self.log_std.exp())

    def value(self, obs):
        return self.critic(obs).squeeze(-1)


class PPO:
    def __init__(self, env, device, options):
        self.env, self.device, self.options = env, device, options
        self.net = ActorCritic(env.observation_dim, env.action_dim).to(device)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=options["lr"])
        self.norm = RunningNorm(env.observation_dim) if options["norm_obs"] else None

    def observe(self, obs):
        obs = torch.as_tensor(obs, device=self.device)
        if self.norm is not None:
            self.norm.update(obs)
            obs = self.norm(obs)
        return obs

    @torch.no_grad()
    def collect(self, steps):
        rollout = {key: [] for key in ("obs", "act", "logp", "val", "rew", "done")}
        obs = self.observe(self.env.reset())
        for _ in range(steps):
            dist = self.net.dist(obs)
            action = dist.sample()
            following, reward, done = self.env.step(action.cpu().numpy())
            entry = dict(obs=obs, act=action, logp=dist.log_prob(action).sum(-1), val=self.net.value(obs))
            entry["rew"], entry["done"] = torch.from_numpy(reward), torch.from_numpy(done)
            for key, value in entry.items():
                rollout[key].append(value)
            obs = self.observe(following)
        last = self.net.value(obs)
        return {key: torch.stack(values) for key, values in rollout.items()}, last

    def advantages(self, rollout, last, gamma=0.99, lam=0.95):
        if self.options["gae_on_cpu"]:
            values, last = rollout["val"].cpu(), last.cpu()
            rewards, dones = rollout["rew"], rollout["done"]
        else:
            values = rollout["val"]
            rewards, dones = (rollout[k].to(self.device) for k in ("rew", "done"))
        out, running = torch.zeros_like(values), torch.zeros_like(last)
        for t in reversed(range(len(values))):
            following = values[t + 1] if t + 1 < len(values) else last
            delta = rewards[t] + gamma * following * (1 - dones[t]) - values[t]
            running = delta + gamma * lam * (1 - dones[t]) * running
            out[t] = running
        return out, out + values

    def update(self):
        rollout, last = self.collect(self.options["steps"])
        advantage, returns = self.advantages(rollout, last)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        flat = {k: v.flatten(0, 1) for k, v in rollout.items()}
        advantage, returns = advantage.flatten(), returns.flatten()
        for rows in torch.randperm(len(advantage)).split(8):
            dist = self.net.dist(flat["obs"][rows])
            ratio = (dist.log_prob(flat["act"][rows]).sum(-1) - flat["logp"][rows]).exp()
            gain = ratio * advantage[rows]  # raises
            clipped = ratio.clamp(0.8, 1.2) * advantage[rows]
            value_loss = (self.net.value(flat["obs"][rows]) - returns[rows]).pow(2).mean()
            loss = -torch.min(gain, clipped).mean() + 0.5 * value_loss
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return {"loss": loss.item(), "reward": flat["rew"].mean().item()}
