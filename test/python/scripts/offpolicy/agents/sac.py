import copy
import math

import torch
from torch import nn
from torch.distributions import Categorical

import globals as G

from .dqn import mlp, polyak


class Twin(nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        self.nets = nn.ModuleList([mlp(sizes), mlp(sizes)])

    def forward(self, obs):
        return [net(obs) for net in self.nets]


class DiscreteSAC:
    def __init__(self, obs_dim, n_actions, args):
        self.args = args
        self.actor = mlp([obs_dim, 24, n_actions]).to(G.DEVICE)
        self.critic = Twin(obs_dim, 24, n_actions).to(G.DEVICE)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        self.log_alpha = torch.tensor([math.log(args.alpha)], requires_grad=True) if args.auto_alpha else None
        self.fixed_alpha = torch.tensor(args.alpha)
        self.target_entropy = 0.6 * math.log(n_actions)
        self.opts = {
            'actor': torch.optim.Adam(self.actor.parameters(), lr=args.lr),
            'critic': torch.optim.Adam(self.critic.parameters(), lr=args.lr),
        }
        if self.log_alpha is not None:
            self.opts['alpha'] = torch.optim.Adam([self.log_alpha], lr=args.lr)

    @property
    def alpha(self):
        return self.log_alpha.detach().exp().item() if self.log_alpha is not None else self.fixed_alpha

    @torch.no_grad()
    def act(self, obs, explore):
        policy = Categorical(logits=self.actor(obs))
        return policy.sample().item() if explore else policy.probs.argmax().item()

    def _step(self, name, loss):
        self.opts[name].zero_grad()
        loss.backward()
        self.opts[name].step()

    def learn(self, batch):
        with torch.no_grad():
            policy = Categorical(logits=self.actor(batch.next_obs))
            q = torch.minimum(*self.critic_target(batch.next_obs))
            value = (policy.probs * (q - self.alpha * policy.logits)).sum(-1)
            goal = batch.reward + self.args.gamma * (1 - batch.done) * value
        both = [q.gather(1, batch.action.unsqueeze(1)).squeeze(1) for q in self.critic(batch.obs)]
        errors = [(goal - q) for q in both]
        critic_loss = sum((e ** 2 * batch.weight).mean() for e in errors)
        self._step('critic', critic_loss)

        policy = Categorical(logits=self.actor(batch.obs))
        with torch.no_grad():
            q = torch.minimum(*self.critic(batch.obs))
        actor_loss = (policy.probs * (self.alpha * policy.logits - q)).sum(-1).mean()
        self._step('actor', actor_loss)

        if self.log_alpha is not None:
            surplus = policy.entropy().detach() - self.target_entropy
            alpha_loss = (self.log_alpha * surplus).mean()  # raises
            self._step('alpha', alpha_loss)
        polyak(self.critic_target, self.critic, self.args.tau)
        return {'loss': critic_loss.item(), 'priority': errors[0].detach().cpu().numpy()}
