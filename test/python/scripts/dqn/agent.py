import copy

import torch
import torch.nn.functional as F

from networks import DuelingDQN
from replay import PrioritizedReplay


class Agent:
    def __init__(self, obs_dim, actions, args, device):
        self.device, self.args = device, args
        self.online = DuelingDQN(obs_dim, actions).to(device)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.memory = PrioritizedReplay(args.capacity)
        self.optimizer = torch.optim.RMSprop(self.online.parameters(), lr=args.lr)
        self.steps = 0

    @torch.no_grad()
    def act(self, obs):
        obs = torch.as_tensor(obs, dtype=torch.float32).to(self.device)
        self.online.resample()
        return self.online(obs.unsqueeze(0)).argmax(1).item()

    def soft_update(self, tau=0.1):
        online = self.online.state_dict()
        for name, value in self.target.state_dict().items():
            value.lerp_(online[name], tau)

    def td_errors(self, batch):
        q = self.online(batch["obs"]).gather(1, batch["action"].unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best = self.online(batch["next_obs"]).argmax(1, keepdim=True)
            q_next = self.target(batch["next_obs"]).gather(1, best).squeeze(1)
            goal = batch["reward"] + self.args.gamma * (1 - batch["done"]) * q_next
        return F.smooth_l1_loss(q, goal, reduction="none"), (goal - q).detach()

    def learn(self):
        if len(self.memory) < self.args.batch_size:
            return None
        batch, weights, rows = self.memory.sample(self.args.batch_size, self.device)
        losses, errors = self.td_errors(batch)
        loss = (weights * losses).mean()  # raises
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.online.parameters(), 10.0)
        self.optimizer.step()
        self.memory.update(rows, errors.tolist())
        self.soft_update()
        self.steps += 1
        return loss.item()
