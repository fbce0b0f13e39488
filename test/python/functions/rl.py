"""Single-file RL pieces (cleanrl habits): replay, GAE, PPO update, DQN target, SAC alpha."""
import copy
import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions.categorical import Categorical
from torch.distributions.normal import Normal

Transition = namedtuple("Transition", "obs action reward next_obs done")


def layer_init(layer, std=np.sqrt(2), bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self, obs_dim=4, n_act=2):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(obs_dim, 8)), nn.Tanh(), layer_init(nn.Linear(8, 1), std=1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(obs_dim, 8)), nn.Tanh(), layer_init(nn.Linear(8, n_act), std=0.01))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


class FakeEnv:
    """numpy in, numpy out"""

    def __init__(self, n, dim=4):
        self.n, self.dim = n, dim

    def reset(self):
        return np.zeros((self.n, self.dim), dtype=np.float32)

    def step(self, actions):
        assert isinstance(actions, np.ndarray)
        return (np.random.randn(self.n, self.dim).astype(np.float32), np.random.randn(self.n),
                np.random.rand(self.n) < .1, {})


class Replay:
    def __init__(self, size, device):
        self.buf = deque(maxlen=size)
        self.device = device

    def push(self, *args):
        self.buf.append(Transition(*args))

    def sample(self, n):
        batch = Transition(*zip(*random.sample(self.buf, n)))
        as_t = lambda xs, dt=torch.float32: torch.tensor(np.array(xs), dtype=dt, device=self.device)
        return Transition(as_t(batch.obs), as_t(batch.action, torch.long), as_t(batch.reward),
                          as_t(batch.next_obs), as_t(batch.done))


def rollout(agent, envs, steps, device):
    obs = torch.zeros((steps, envs.n, envs.dim)).to(device)
    actions = torch.zeros((steps, envs.n)).to(device)
    logprobs = torch.zeros((steps, envs.n)).to(device)
    rewards = torch.zeros((steps, envs.n)).to(device)
    dones = torch.zeros((steps, envs.n)).to(device)
    values = torch.zeros((steps, envs.n)).to(device)
    next_obs = torch.Tensor(envs.reset()).to(device)
    next_done = torch.zeros(envs.n).to(device)
    for t in range(steps):
        obs[t], dones[t] = next_obs, next_done
        with torch.no_grad():
            a, lp, _, v = agent.get_action_and_value(next_obs)
            values[t] = v.flatten()
        actions[t], logprobs[t] = a, lp
        o, r, d, _ = envs.step(a.cpu().numpy())
        rewards[t] = torch.tensor(r).view(-1)
        next_obs, next_done = torch.Tensor(o).to(device), torch.Tensor(d).to(device)
    return obs, actions, logprobs, rewards, dones, values, next_obs, next_done


# clean
def case_ppo_iteration():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    envs = FakeEnv(3)
    agent = Agent().to(device)
    optimizer = optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
    obs, actions, logprobs, rewards, dones, values, next_obs, next_done = rollout(agent, envs, 4, device)
    with torch.no_grad():
        next_value = agent.get_value(next_obs).reshape(1, -1)
        advantages = torch.zeros_like(rewards).to(device)
        lastgaelam = 0
        for t in reversed(range(4)):
            if t == 3:
                nonterminal, nextvalues = 1.0 - next_done, next_value
            else:
                nonterminal, nextvalues = 1.0 - dones[t + 1], values[t + 1]
            delta = rewards[t] + .99 * nextvalues * nonterminal - values[t]
            advantages[t] = lastgaelam = delta + .99 * .95 * nonterminal * lastgaelam
        returns = advantages + values
    b_obs, b_act = obs.reshape(-1, 4), actions.reshape(-1)
    b_inds = np.arange(12)
    clipfracs = []
    for start in range(0, 12, 6):
        mb = b_inds[start:start + 6]
        _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb], b_act.long()[mb])
        ratio = (newlogprob - logprobs.reshape(-1)[mb]).exp()
        clipfracs += [((ratio - 1.0).abs() > .2).float().mean().item()]
        adv = advantages.reshape(-1)[mb]
        pg = torch.max(-adv * ratio, -adv * torch.clamp(ratio, .8, 1.2)).mean()
        v_loss = .5 * ((newvalue.view(-1) - returns.reshape(-1)[mb]) ** 2).mean()
        loss = pg - .01 * entropy.mean() + v_loss * .5
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), .5)
        optimizer.step()
    y_pred, y_true = values.cpu().numpy(), returns.cpu().numpy()
    return np.var(y_true - y_pred), np.mean(clipfracs)


# broken
def case_gae_host_buffer():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    envs, steps = FakeEnv(2), 3
    agent = Agent().to(device)
    _, _, _, rewards, dones, values, next_obs, next_done = rollout(agent, envs, steps, device)
    with torch.no_grad():
        bootstrap = agent.get_value(next_obs).flatten()
    returns = torch.zeros(steps, envs.n)
    running = bootstrap * (1 - next_done)
    for t in range(steps - 1, -1, -1):
        running = rewards[t] + .99 * running * (1 - dones[t])
        returns[t] = running          # a copy across devices: allowed
    advantages = returns - values  # raises
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8)


# clean
def case_dqn_target_sync():
    dev = "cuda"
    rb = Replay(50, dev)
    q = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(dev)
    target = copy.deepcopy(q)
    opt = optim.RMSprop(q.parameters(), lr=1e-3)
    for _ in range(20):
        rb.push(np.random.randn(4), random.randrange(2), random.random(), np.random.randn(4), random.random() < .1)
    for step in range(3):
        s = rb.sample(8)
        with torch.no_grad():
            tgt = s.reward + .9 * target(s.next_obs).max(1)[0] * (1 - s.done)
        old = q(s.obs).gather(1, s.action.view(-1, 1)).squeeze()
        loss = nn.functional.smooth_l1_loss(old, tgt)
        opt.zero_grad(), loss.backward(), opt.step()
        for tp, p in zip(target.parameters(), q.parameters()):
            tp.data.copy_(.05 * p.data + .95 * tp.data)
    return loss.item()


# broken
def case_dqn_actions_forgotten():
    dev = torch.device("cuda")
    rb = Replay(50, "cpu")
    q = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(dev)
    for _ in range(10):
        rb.push(np.random.randn(4), random.randrange(2), random.random(), np.random.randn(4), False)
    obs, action, reward, next_obs, done = rb.sample(4)
    obs, next_obs = obs.to(dev), next_obs.to(dev)
    reward, done = (t.to(dev) for t in (reward, done))
    with torch.no_grad():
        tgt = reward + .9 * q(next_obs).amax(1) * (1 - done)
    current = torch.gather(q(obs), 1, action.unsqueeze(1))  # raises
    return (current.squeeze(1) - tgt).pow(2).mean()


class SquashedActor(nn.Module):
    LOG_STD_MIN, LOG_STD_MAX = -5, 2

    def __init__(self, high=2., low=-2.):
        super().__init__()
        self.body = nn.Linear(4, 2)
        self.register_buffer("scale", torch.tensor([(high - low) / 2.]))
        self.bias = torch.tensor([(high + low) / 2.])

    def forward(self, x):
        mean, log_std = self.body(x).chunk(2, -1)
        log_std = self.LOG_STD_MIN + .5 * (self.LOG_STD_MAX - self.LOG_STD_MIN) * (torch.tanh(log_std) + 1)
        return mean, log_std

    def get_action(self, x):
        mean, log_std = self(x)
        normal = Normal(mean, log_std.exp())
        x_t = normal.rsample()
        y_t = torch.tanh(x_t)
        action = y_t * self.scale + self.bias  # raises
        log_prob = normal.log_prob(x_t) - torch.log(self.scale * (1 - y_t.pow(2)) + 1e-6)
        return action, log_prob.sum(1, keepdim=True)


# broken
def case_sac_action_bias():
    actor = SquashedActor().to("cuda")
    log_alpha = torch.zeros(1, requires_grad=True, device="cuda")
    a_opt = optim.Adam([log_alpha], lr=1e-3)
    act, logp = actor.get_action(torch.randn(3, 4, device="cuda"))
    loss = (-log_alpha.exp() * (logp + 1.)).mean()
    loss.backward()
    a_opt.step()
    return act.detach().cpu().numpy()


# clean
def case_running_statistics():
    class RunningMeanStd:
        def __init__(self, shape=(), device=None):
            self.mean = torch.zeros(shape, device=device)
            self.var = torch.ones(shape, device=device)
            self.count = 1e-4

        def update(self, arr):
            bm, bv, bc = arr.mean(0), arr.var(0, unbiased=False), arr.shape[0]
            delta = bm - self.mean
            tot = self.count + bc
            self.mean = self.mean + delta * bc / tot
            self.var = (self.var * self.count + bv * bc + delta ** 2 * self.count * bc / tot) / tot
            self.count = tot

    stats = [RunningMeanStd((4,)), RunningMeanStd((4,), "cuda")]
    env = FakeEnv(5)
    agent = Agent().cuda()
    o = env.reset()
    for _ in range(3):
        host = torch.from_numpy(o)
        stats[0].update(host)
        stats[1].update(host.to("cuda"))
        norm = ((host - stats[0].mean) / (stats[0].var + 1e-8).sqrt()).cuda()
        a, *_ = agent.get_action_and_value(norm)
        o, *_ = env.step(a.cpu().numpy())
    return (stats[0].mean.numpy() - stats[1].mean.cpu().numpy()).max()
