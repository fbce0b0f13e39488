import random

import torch
import torch.nn.functional as F

from .networks import Dueling, RunningNorm


class Agent:
    def __init__(self, env, args, device):
        self.device, self.gamma, self.double = device, args.gamma, args.double
        self.actions = env.actions
        self.normalizer = RunningNorm(env.observation_size) if args.normalize else None
        self.online = Dueling(env.observation_size, env.actions, normalizer=self.normalizer).to(device)
        self.target = Dueling(env.observation_size, env.actions, normalizer=self.normalizer).to(device)
        self.target.load_state_dict(self.online.state_dict())
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=args.lr)

    @torch.no_grad()
    def act(self, state, epsilon=0.0):
        if random.random() < epsilon:
            return random.randrange(self.actions)
        values = self.online(torch.as_tensor(state, device=self.device)[None])
        return int(values.argmax())

    @torch.no_grad()
    def wanted(self, batch):
        values = self.target(batch.following)
        if self.double:
            best = self.online(batch.following).argmax(dim=1, keepdim=True)
            following = values.gather(1, best).squeeze(1)
        else:
            following = values.amax(dim=1)
        return batch.reward + self.gamma * (1 - batch.done) * following

    def learn(self, batch):
        chosen = self.online(batch.state).gather(1, batch.action[:, None]).squeeze(1)
        errors = self.wanted(batch) - chosen
        losses = F.smooth_l1_loss(errors, torch.zeros_like(errors), reduction="none")
        if batch.weight is not None:
            losses = losses * batch.weight  # raises
        loss = losses.mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item(), errors

    def synchronise(self, tau):
        with torch.no_grad():
            for slow, fast in zip(self.target.parameters(), self.online.parameters()):
                slow.lerp_(fast, tau)
