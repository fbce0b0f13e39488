"""The agent: action choice, losses, target network."""
import copy
import random

import torch
import torch.nn.functional as F

from nets import project


class Agent:
    def __init__(self, net, device, gamma=0.95, n_step=1, lr=1e-3, sync=4):
        self.device = device
        self.online = net.to(device)
        self.target = copy.deepcopy(self.online).eval()
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=lr)
        self.gamma, self.n_step, self.sync, self.updates = gamma, n_step, sync, 0
        self.discounts = torch.tensor([gamma ** k for k in range(n_step)])

    def act(self, obs, epsilon):
        if random.random() < epsilon:
            return random.randrange(self.online.actions)
        with torch.no_grad():
            return self.online(obs.to(self.device)[None]).argmax(1).item()

    def returns(self, batch):
        if self.n_step == 1:
            return batch.reward[:, 0]
        return batch.reward @ self.discounts  # raises

    def errors(self, batch):
        rows = torch.arange(len(batch.action))
        returns = self.returns(batch)
        gamma = self.gamma ** self.n_step
        with torch.no_grad():
            best = self.online(batch.next_obs).argmax(1)
        if self.online.atoms > 1:
            with torch.no_grad():
                next_probs = self.target.logits(batch.next_obs).softmax(-1)[rows, best]
                goal = project(self.target.support, next_probs, returns, 1 - batch.done, gamma)
            log_probs = self.online.logits(batch.obs).log_softmax(-1)[rows, batch.action]
            return -(goal * log_probs).sum(1)
        with torch.no_grad():
            value = self.target(batch.next_obs).gather(1, best[:, None]).squeeze(1)
            goal = returns + gamma * (1 - batch.done) * value
        q = self.online(batch.obs).gather(1, batch.action[:, None]).squeeze(1)
        return q - goal

    def learn(self, replay, size):
        batch = replay.sample(size).to(self.device)
        error = self.errors(batch)
        if self.online.atoms > 1:
            loss = (batch.weight * error).mean()
        else:
            loss = (batch.weight * F.smooth_l1_loss(error, torch.zeros_like(error), reduction="none")).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.online.resample()
        replay.feedback(batch.index.cpu(), error.detach())
        self.updates += 1
        if self.updates % self.sync == 0:
            self.target.load_state_dict(self.online.state_dict())
        return loss.item()
