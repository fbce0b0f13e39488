import argparse
import copy
import random

import torch
import torch.nn.functional as F

from nets import GaussianActor, RunningScale, TwinCritic
from replay import NStep, ReplayBuffer, Step
from world import Pendulumish, demonstrations


class SoftActorCritic:
    def __init__(self, world, args, device):
        self.args, self.device = args, device
        self.actor = GaussianActor(world.obs_dim, world.act_dim, world.low, world.high).to(device)
        critic = TwinCritic(world.obs_dim, world.act_dim)
        if args.late_move:
            self.target = copy.deepcopy(critic)
            self.critic = critic.to(device)
        else:
            self.critic = critic.to(device)
            self.target = copy.deepcopy(self.critic)
        self.target.requires_grad_(False)
        self.log_alpha = torch.zeros(1, device=device, requires_grad=True)
        self.target_entropy = -float(world.act_dim)
        self.scale = RunningScale() if args.scale else None
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=args.lr)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=args.lr)
        self.alpha_opt = torch.optim.Adam([self.log_alpha], lr=args.lr)

    @torch.no_grad()
    def act(self, obs, greedy=False):
        obs = obs.to(self.device).unsqueeze(0)
        a = self.actor.squash(self.actor(obs).mean) if greedy else self.actor.sample(obs)[0]
        return a.squeeze(0)

    def backup(self, b):
        with torch.no_grad():
            a, logp = self.actor.sample(b.nxt)
            q = self.target(b.nxt, a).min(0).values
            y = b.rew + self.args.gamma ** self.args.nstep * b.mask * (q - self.log_alpha.exp() * logp)
        return self.scale(y) if self.scale is not None else y

    def update(self, b):
        y = self.backup(b)
        q = self.critic(b.obs, b.act)
        critic_loss = F.mse_loss(q, y.expand_as(q))
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()

        a, logp = self.actor.sample(b.obs)
        actor_loss = (self.log_alpha.detach().exp() * logp - self.critic(b.obs, a).min(0).values).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()

        alpha_loss = -(self.log_alpha * (logp.detach() + self.target_entropy)).mean()
        self.alpha_opt.zero_grad()
        alpha_loss.backward()
        self.alpha_opt.step()

        with torch.no_grad():
            for p, t in zip(self.critic.parameters(), self.target.parameters()):
                t.lerp_(p.to(t.device), 0.01)
        return critic_loss.item()


@torch.no_grad()
def roll_out(agent, world, steps):
    obs = world.reset()
    for _ in range(steps):
        act = agent.act(obs, greedy=True)
        yield obs, act
        obs, _, done = world.step(act.cpu())
        if done:
            return


@torch.no_grad()
def value_report(agent, world, steps=6):
    """What the critic thinks of the states that the greedy policy meets."""
    states, actions = (torch.stack(column) for column in zip(*roll_out(agent, world, steps)))
    states.to(agent.device)
    values = agent.critic(states, actions)
    return values.min(0).values.tolist()


def main(args):
    random.seed(0)
    torch.manual_seed(0)
    device = torch.device('cuda', args.gpu) if torch.cuda.is_available() else torch.device('cpu')
    world = Pendulumish()
    agent = SoftActorCritic(world, args, device)
    buffer = ReplayBuffer(200, device, args.store)
    nstep = NStep(args.nstep, args.gamma)
    if args.demos:
        buffer.seed_with(Step(*d) for d in demonstrations(world, args.demos))

    obs = world.reset()
    loss = float('nan')
    for t in range(args.steps):
        act = agent.act(obs)
        nxt, rew, done = world.step(act.cpu())
        for ready in nstep.push(Step(obs, act, rew, nxt, torch.tensor(1.0 - float(done)))):
            buffer.add(ready)
        obs = world.reset() if done else nxt
        if len(buffer) >= 2 * args.batch:
            loss = agent.update(buffer.sample(args.batch))
    print('critic loss', loss, 'alpha', agent.log_alpha.exp().item())
    if args.values:
        print('values', value_report(agent, world))
    print('greedy', agent.act(world.reset(), greedy=True).cpu().numpy())


if __name__ == '__main__':
    p = argparse.ArgumentParser()
    p.add_argument('--store', default='cpu', choices=['cpu', 'gpu', 'asis'])
    p.add_argument('--demos', type=int, default=0)
    p.add_argument('--nstep', type=int, default=1)
    p.add_argument('--gamma', type=float, default=0.95)
    p.add_argument('--lr', type=float, default=1e-3)
    p.add_argument('--batch', type=int, default=12)
    p.add_argument('--steps', type=int, default=34)
    p.add_argument('--gpu', type=int, default=0)
    p.add_argument('--scale', action='store_true')
    p.add_argument('--values', action='store_true')
    p.add_argument('--late-move', action='store_true', help='copy the target before the critic is moved')
    main(p.parse_args())
