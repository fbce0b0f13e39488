import argparse
import random
from collections import deque, namedtuple
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical, Normal

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


@dataclass
class Args:
    num_envs: int = 3
    num_steps: int = 4
    gamma: float = 0.99
    gae_lambda: float = 0.95
    cuda: bool = True


class Agent(nn.Module):
    def __init__(self, obs=5, actions=2):
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(obs, 8), nn.Tanh(), nn.Linear(8, 1))
        self.actor = nn.Sequential(nn.Linear(obs, 8), nn.Tanh(), nn.Linear(8, actions))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


def _fake_env_step(n):
    return [[random.random() for _ in range(5)] for _ in range(n)], [random.random() for _ in range(n)], [0.0] * n


def _rollout(args, agent, device, rewards):
    obs = torch.zeros((args.num_steps, args.num_envs, 5)).to(device)
    values = torch.zeros((args.num_steps, args.num_envs)).to(device)
    dones = torch.zeros((args.num_steps, args.num_envs)).to(device)
    next_obs = torch.Tensor(_fake_env_step(args.num_envs)[0]).to(device)
    next_done = torch.zeros(args.num_envs).to(device)
    for step in range(args.num_steps):
        obs[step], dones[step] = next_obs, next_done
        with torch.no_grad():
            action, _, _, value = agent.get_action_and_value(next_obs)
            values[step] = value.flatten()
        o, r, d = _fake_env_step(len(action.cpu().numpy()))
        rewards[step] = torch.tensor(r).view(-1)
        next_obs, next_done = torch.Tensor(o).to(device), torch.Tensor(d).to(device)
    return obs, values, dones, next_obs, next_done


def ppo_rollout_and_gae():
    args = Args()
    device = torch.device("cuda" if torch.cuda.is_available() and args.cuda else "cpu")
    agent = Agent().to(device)
    rewards = torch.zeros((args.num_steps, args.num_envs)).to(device)
    obs, values, dones, next_obs, next_done = _rollout(args, agent, device, rewards)
    with torch.no_grad():
        next_value = agent.get_value(next_obs).reshape(1, -1)
        advantages = torch.zeros_like(rewards).to(device)
        lastgaelam = 0
        for t in reversed(range(args.num_steps)):
            if t == args.num_steps - 1:
                nextnonterminal, nextvalues = 1.0 - next_done, next_value
            else:
                nextnonterminal, nextvalues = 1.0 - dones[t + 1], values[t + 1]
            delta = rewards[t] + args.gamma * nextvalues * nextnonterminal - values[t]
            advantages[t] = lastgaelam = delta + args.gamma * args.gae_lambda * nextnonterminal * lastgaelam
    b_inds = torch.randperm(args.num_steps * args.num_envs)
    return (advantages + values).reshape(-1)[b_inds], obs.reshape(-1, 5)[b_inds]


def ppo_returns_with_rewards_on_the_cpu():
    args = Args(num_steps=3)
    device = torch.device("cuda" if torch.cuda.is_available() and args.cuda else "cpu")
    agent = Agent().to(device)
    rewards = torch.zeros((args.num_steps, args.num_envs))
    obs, values, dones, next_obs, _ = _rollout(args, agent, device, rewards)
    with torch.no_grad():
        ret = agent.get_value(next_obs).reshape(-1)
        returns = torch.zeros_like(values)
        for t in reversed(range(args.num_steps)):
            ret = rewards[t] + args.gamma * ret * (1.0 - dones[t])  # raises
            returns[t] = ret
    return returns - values


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)


def _dqn(device):
    net = lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(device)
    policy, target = net(), net()
    target.load_state_dict(policy.state_dict())
    return policy, target


def _fill(memory, device):
    for i in range(8):
        s = torch.randn(1, 4, device=device)
        n = None if i % 4 == 3 else torch.randn(1, 4, device=device)
        memory.push(s, torch.tensor([[i % 2]], device=device), n, torch.tensor([1.0], device=device))


def dqn_update():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    policy, target = _dqn(device)
    memory = ReplayMemory(100)
    _fill(memory, device)
    batch = Transition(*zip(*memory.sample(8)))
    non_final_mask = torch.tensor(tuple(map(lambda s: s is not None, batch.next_state)), device=device, dtype=torch.bool)
    non_final = torch.cat([s for s in batch.next_state if s is not None])
    q = policy(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
    next_q = torch.zeros(8, device=device)
    with torch.no_grad():
        next_q[non_final_mask] = target(non_final).max(1)[0]
    loss = F.smooth_l1_loss(q, (next_q * 0.99 + torch.cat(batch.reward)).unsqueeze(1))
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy.parameters(), 100)


def dqn_update_bare_next_values():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    policy, target = _dqn(device)
    memory = ReplayMemory(100)
    _fill(memory, device)
    batch = Transition(*zip(*memory.sample(8)))
    mask = torch.tensor([s is not None for s in batch.next_state])
    non_final = torch.cat([s for s in batch.next_state if s is not None])
    q = policy(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
    next_q = torch.zeros(8)
    with torch.no_grad():
        next_q[mask] = target(non_final).max(1)[0].cpu()
    expected = next_q * 0.99 + torch.cat(batch.reward)  # raises
    F.smooth_l1_loss(q, expected.unsqueeze(1)).backward()


class GaussianPolicy(nn.Module):
    LOG_STD = (-5.0, 2.0)

    def __init__(self, low, high):
        super().__init__()
        self.fc = nn.Linear(4, 8)
        self.mean, self.logstd = nn.Linear(8, 2), nn.Linear(8, 2)
        self.register_buffer("action_scale", (high - low) / 2.0)
        self.action_bias = (high + low) / 2.0

    def forward(self, x):
        h = F.relu(self.fc(x))
        return self.mean(h), self.logstd(h).clamp(*self.LOG_STD)

    def sample(self, x):
        mean, log_std = self(x)
        normal = Normal(mean, log_std.exp())
        x_t = normal.rsample()
        y_t = torch.tanh(x_t)
        action = y_t * self.action_scale + self.action_bias  # raises
        return action, normal.log_prob(x_t).sum(1)

    @torch.no_grad()
    def act(self, obs):
        mean, _ = self(torch.as_tensor(obs, dtype=torch.float32, device=self.fc.weight.device)[None])
        return torch.tanh(mean)[0].cpu().numpy() * self.action_scale.cpu().numpy()


def sac_action_from_the_mean():
    actor = GaussianPolicy(torch.tensor([-1.0, -2.0]), torch.tensor([1.0, 2.0])).to("cuda")
    return actor.act([0.1, 0.2, 0.3, 0.4])


def sac_sampled_action():
    actor = GaussianPolicy(torch.tensor([-1.0, -2.0]), torch.tensor([1.0, 2.0])).to("cuda")
    actor.sample(torch.randn(3, 4, device="cuda"))


class AverageMeter:
    def __init__(self, name):
        self.name = name
        self.sum, self.count = 0, 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n

    @property
    def avg(self):
        return self.sum / self.count


def _accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        _, pred = output.topk(maxk, 1, True, True)
        correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
        return [correct[:k].reshape(-1).float().sum(0, keepdim=True) for k in topk]


def imagenet_style_meters():
    net = nn.Linear(4, 5).cuda(0)
    top1, top2, losses = AverageMeter("Acc@1"), AverageMeter("Acc@2"), AverageMeter("Loss")
    for _ in range(2):
        images, target = torch.randn(6, 4).cuda(0, non_blocking=True), torch.randint(0, 5, (6,)).cuda(0)
        output = net(images)
        losses.update(F.cross_entropy(output, target).item(), images.size(0))
        a1, a2 = _accuracy(output, target, topk=(1, 2))
        top1.update(a1[0], images.size(0))
        top2.update(a2[0], images.size(0))
    return f"{top1.name} {top1.avg:.2f} {top2.avg:.2f} {losses.avg:.4f}"


class ConfusionMatrix:
    def __init__(self, n):
        self.n = n
        self.mat = torch.zeros(n, n)

    def update(self, pred, target):
        idx = target * self.n + pred
        self.mat += torch.bincount(idx, minlength=self.n**2).view(self.n, self.n)  # raises


class LazyConfusionMatrix:
    def __init__(self, n):
        self.n, self.mat = n, None

    def update(self, pred, target):
        if self.mat is None:
            self.mat = torch.zeros((self.n, self.n), dtype=torch.int64, device=target.device)
        idx = target * self.n + pred
        self.mat += torch.bincount(idx, minlength=self.n**2).reshape(self.n, self.n)


def confusion_matrix():
    net, cm = nn.Linear(4, 3).cuda(), ConfusionMatrix(3)
    for _ in range(2):
        x, y = torch.randn(5, 4).cuda(), torch.randint(0, 3, (5,)).cuda()
        cm.update(net(x).argmax(1), y)
    return cm.mat


def lazy_confusion_matrix():
    net, cm = nn.Linear(4, 3).cuda(), LazyConfusionMatrix(3)
    for _ in range(2):
        x, y = torch.randn(5, 4).cuda(), torch.randint(0, 3, (5,)).cuda()
        cm.update(net(x).argmax(1), y)
    return cm.mat.diag().float() / cm.mat.sum(1).clamp(min=1)


class EarlyStopping:
    mode_dict = {"min": torch.lt, "max": torch.gt}

    def __init__(self, mode="min", min_delta=0.0, patience=3):
        self.monitor_op = self.mode_dict[mode]
        self.min_delta = min_delta
        self.best_score = torch.tensor([float("inf")]) if mode == "min" else torch.tensor([-float("inf")])
        self.wait, self.patience = 0, patience

    def check(self, current):
        if self.monitor_op(current - self.min_delta, self.best_score):  # raises
            self.best_score, self.wait = current, 0
        else:
            self.wait += 1
        return self.wait >= self.patience


def early_stopping_on_a_tensor_metric():
    net = nn.Linear(4, 1).to("cuda")
    stopper = EarlyStopping()
    for _ in range(3):
        val = F.mse_loss(net(torch.randn(6, 4, device="cuda")), torch.zeros(6, 1, device="cuda")).detach()
        if stopper.check(val.reshape(1)):
            break


def collect_validation_scores():
    args = argparse.Namespace(device="cuda:0", threshold=0.5)
    net = nn.Linear(4, 1).to(args.device)
    preds, gts = [], []
    with torch.no_grad():
        for _ in range(2):
            x, y = torch.randn(5, 4), torch.randint(0, 2, (5, 1)).float()
            preds.append(torch.sigmoid(net(x.to(args.device))))
            gts.append(y)
    preds, gts = torch.cat(preds), torch.cat(gts)
    tp = ((preds > args.threshold).float() * gts).sum()  # raises
    return (tp / gts.sum().clamp(min=1)).item()


def r2_score_accumulated():
    net = nn.Linear(4, 1).to("cuda:0")
    state = {"sum_sq": torch.tensor(0.0), "residual": torch.tensor(0.0), "n": 0}
    for _ in range(2):
        x, y = torch.randn(5, 4), torch.randn(5, 1)
        with torch.no_grad():
            pred = net(x.cuda())
        residual = (pred - y.cuda()).pow(2).sum()
        state["residual"] = state["residual"] + residual
        state["sum_sq"] = state["sum_sq"] + y.pow(2).sum().cuda()
        state["n"] += len(x)
    return 1 - (state["residual"] / state["sum_sq"]).item()
