"""single-file RL in the style of cleanrl and of course assignments"""
import collections
import random
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions import Categorical, Normal
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class ToyEnv:
    def __init__(self, num_envs=2, seed=0):
        self.rng = np.random.RandomState(seed)
        self.n = num_envs

    def reset(self):
        return self.rng.randn(self.n, 3).astype(np.float32)

    def step(self, action):
        assert isinstance(action, np.ndarray)
        return self.reset(), self.rng.rand(self.n).astype(np.float32), self.rng.rand(self.n) > 0.8, {}


def layer_init(layer, std=np.sqrt(2), bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(3, 8)), nn.Tanh(), layer_init(nn.Linear(8, 1), std=1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(3, 8)), nn.Tanh(), layer_init(nn.Linear(8, 2), std=0.01))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


def collect(agent, envs, num_steps):
    obs = torch.zeros((num_steps, envs.n, 3)).to(device)
    actions = torch.zeros((num_steps, envs.n)).to(device)
    logprobs = torch.zeros((num_steps, envs.n)).to(device)
    rewards = torch.zeros((num_steps, envs.n)).to(device)
    dones = torch.zeros((num_steps, envs.n)).to(device)
    values = torch.zeros((num_steps, envs.n)).to(device)
    next_obs = torch.Tensor(envs.reset()).to(device)
    next_done = torch.zeros(envs.n).to(device)
    for step in range(num_steps):
        obs[step] = next_obs
        dones[step] = next_done
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(next_obs)
            values[step] = value.flatten()
        actions[step] = action
        logprobs[step] = logprob
        next_obs, reward, done, info = envs.step(action.cpu().numpy())
        rewards[step] = torch.tensor(reward).to(device).view(-1)
        next_obs, next_done = torch.Tensor(next_obs).to(device), torch.Tensor(done).to(device)
    return SimpleNamespace(**{k: v for k, v in locals().items() if isinstance(v, torch.Tensor)})


def gae(agent, ro, gamma=0.99, lam=0.95):
    with torch.no_grad():
        next_value = agent.get_value(ro.next_obs).reshape(1, -1)
        advantages = torch.zeros_like(ro.rewards).to(device)
        lastgaelam = 0
        T = ro.rewards.shape[0]
        for t in reversed(range(T)):
            if t == T - 1:
                nextnonterminal, nextvalues = 1.0 - ro.next_done, next_value
            else:
                nextnonterminal, nextvalues = 1.0 - ro.dones[t + 1], ro.values[t + 1]
            delta = ro.rewards[t] + gamma * nextvalues * nextnonterminal - ro.values[t]
            advantages[t] = lastgaelam = delta + gamma * lam * nextnonterminal * lastgaelam
        return advantages, advantages + ro.values


def case_ppo():
    agent = Agent().to(device)
    optimizer = optim.Adam(agent.parameters(), lr=1e-3, eps=1e-5)
    ro = collect(agent, ToyEnv(), 4)
    advantages, returns = gae(agent, ro)
    b_obs, b_act = ro.obs.reshape(-1, 3), ro.actions.reshape(-1)
    b_logp, b_adv, b_ret = ro.logprobs.reshape(-1), advantages.reshape(-1), returns.reshape(-1)
    b_inds = np.arange(8)
    clipfracs = []
    np.random.shuffle(b_inds)
    for start in range(0, 8, 4):
        mb = b_inds[start:start + 4]
        _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb], b_act.long()[mb])
        ratio = (newlogprob - b_logp[mb]).exp()
        with torch.no_grad():
            clipfracs += [((ratio - 1.0).abs() > 0.2).float().mean().item()]
        pg = torch.max(-b_adv[mb] * ratio, -b_adv[mb] * torch.clamp(ratio, 0.8, 1.2)).mean()
        loss = pg + 0.5 * ((newvalue.view(-1) - b_ret[mb]) ** 2).mean() - 0.01 * entropy.mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
    y_pred, y_true = ro.values.cpu().numpy(), returns.cpu().numpy()
    return 1 - np.var(y_true - y_pred) / np.var(y_true)


def case_a2c_rewards_list():
    agent = Agent().to(device)
    envs = ToyEnv()
    obs = torch.from_numpy(envs.reset()).to(device)
    log_probs, values, rewards, masks = [], [], [], []
    for _ in range(3):
        action, logp, _, value = agent.get_action_and_value(obs)
        nxt, reward, done, _ = envs.step(action.cpu().numpy())
        log_probs.append(logp)
        values.append(value.squeeze(-1))
        rewards.append(torch.from_numpy(reward))
        masks.append(torch.from_numpy(1 - done.astype(np.float32)))
        obs = torch.from_numpy(nxt).to(device)
    R = agent.get_value(obs).squeeze(-1).detach()
    returns = []
    for step in reversed(range(3)):
        R = rewards[step] + 0.99 * R * masks[step]  # raises
        returns.insert(0, R)
    adv = torch.cat(returns) - torch.cat(values)
    (-(torch.cat(log_probs) * adv.detach()).mean()).backward()


def case_env_step_on_tensor():
    agent, envs = Agent().cuda(), ToyEnv()
    obs = envs.reset()
    for t in range(2):
        action, *_ = agent.get_action_and_value(torch.as_tensor(obs, device="cuda"))
        obs, rew, done, _ = envs.step(action.numpy())  # raises


class ReplayBuffer:
    def __init__(self, capacity):
        self.buffer = collections.deque(maxlen=capacity)

    def add(self, *transition):
        self.buffer.append(transition)

    def sample(self, k):
        s, a, r, s2, d = zip(*random.sample(self.buffer, k))
        return np.array(s), a, r, np.array(s2), d


class DQN:
    def __init__(self, device):
        self.device = device
        self.q_net = nn.Linear(3, 2).to(device)
        self.target_q_net = nn.Linear(3, 2).to(device)
        self.target_q_net.load_state_dict(self.q_net.state_dict())
        self.optimizer = torch.optim.Adam(self.q_net.parameters(), lr=1e-2)
        self.epsilon = 0.1

    def take_action(self, state):
        if np.random.random() < self.epsilon:
            return np.random.randint(2)
        state = torch.tensor(np.array([state]), dtype=torch.float).to(self.device)
        return self.q_net(state).argmax().item()

    def update(self, transition_dict):
        to = dict(dtype=torch.float)
        states = torch.tensor(transition_dict["states"], **to).to(self.device)
        actions = torch.tensor(transition_dict["actions"]).view(-1, 1).to(self.device)
        rewards = torch.tensor(transition_dict["rewards"], **to).view(-1, 1).to(self.device)
        next_states = torch.tensor(transition_dict["next_states"], **to).to(self.device)
        dones = torch.tensor(transition_dict["dones"], **to).view(-1, 1)
        q = self.q_net(states).gather(1, actions)
        max_next = self.target_q_net(next_states).max(1)[0].view(-1, 1)
        targets = rewards + 0.98 * max_next * (1 - dones)  # raises
        loss = torch.mean(F.mse_loss(q, targets))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def case_dqn_update():
    random.seed(1)
    agent, buffer = DQN(device), ReplayBuffer(10)
    state = np.zeros(3)
    for i in range(6):
        nxt = np.random.rand(3)
        buffer.add(state, agent.take_action(state), 1.0, nxt, i == 5)
        state = nxt
    keys = ["states", "actions", "rewards", "next_states", "dones"]
    agent.update(dict(zip(keys, buffer.sample(4))))


class TensorReplay:
    """everything lives in preallocated host tensors, batches go to the device"""

    def __init__(self, size, obs_dim, device):
        self.obs = torch.zeros(size, obs_dim)
        self.act = torch.zeros(size, dtype=torch.long)
        self.rew = torch.zeros(size)
        self.ptr, self.size, self.device = 0, size, device

    def push(self, obs, act, rew):
        i = self.ptr % self.size
        self.obs[i], self.act[i], self.rew[i] = obs, act, rew
        self.ptr += 1

    def sample(self, n):
        idx = torch.randint(0, min(self.ptr, self.size), (n,))
        return (x[idx].to(self.device) for x in (self.obs, self.act, self.rew))

    def priorities(self, td):
        p = torch.ones(self.size)
        p[: len(td)] = td
        return p


def case_tensor_replay():
    rb = TensorReplay(8, 3, "cuda")
    q = nn.Linear(3, 2).to("cuda")
    for _ in range(10):
        o = torch.randn(3, device="cuda")
        rb.push(o, q(o).argmax(), torch.rand(()).cuda())
    o, a, r = rb.sample(5)
    td = (q(o).gather(1, a[:, None]).squeeze(1) - r).abs().detach()
    probs = rb.priorities(td)
    return torch.multinomial(probs, 2)


def case_tensor_replay_indices():
    rb = TensorReplay(8, 3, "cuda")
    for i in range(8):
        rb.push(torch.full((3,), float(i)), i % 2, 0.1 * i)
    td = torch.rand(8, device="cuda")
    worst = td.topk(3).indices
    return rb.obs[worst].mean(0)  # raises


class OUNoise:
    def __init__(self, dim, theta=0.15, sigma=0.2):
        self.mu, self.theta, self.sigma = torch.zeros(dim), theta, sigma
        self.state = self.mu.clone()

    def sample(self):
        self.state = self.state + self.theta * (self.mu - self.state) + self.sigma * torch.randn(len(self.state))
        return self.state


class DDPGActor(nn.Module):
    def __init__(self, low, high):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.register_buffer("action_scale", torch.tensor((high - low) / 2.0))
        self.register_buffer("action_bias", torch.tensor((high + low) / 2.0))

    def forward(self, x):
        return torch.tanh(self.fc(x)) * self.action_scale + self.action_bias


def case_ddpg_exploration():
    actor = DDPGActor(np.float32([-1, -1]), np.float32([1, 2])).to(device)
    noise = OUNoise(2)
    with torch.no_grad():
        a = actor(torch.Tensor(np.zeros((1, 3))).to(device))
        a += noise.sample()  # raises
    return a.cpu().numpy().clip(-1, 1)


def soft_update(target, source, tau):
    for tp, sp in zip(target.parameters(), source.parameters()):
        tp.data.copy_(tau * sp.data + (1 - tau) * tp.data)


def case_sac_alpha():
    actor = nn.Linear(3, 4).to(device)
    critic, critic_t = nn.Linear(5, 1).to(device), nn.Linear(5, 1).to(device)
    log_alpha = torch.zeros(1, requires_grad=True, device=device)
    target_entropy = -torch.prod(torch.Tensor((2,)).to(device)).item()
    a_opt = optim.Adam([log_alpha], lr=1e-2)
    obs = torch.randn(4, 3, device=device)
    mean, log_std = actor(obs).chunk(2, -1)
    dist = Normal(mean, log_std.exp())
    act = dist.rsample()
    logp = dist.log_prob(act).sum(1, keepdim=True) - torch.log(1 - torch.tanh(act).pow(2) + 1e-6).sum(1, keepdim=True)
    (log_alpha.exp().detach() * logp - critic(torch.cat([obs, act], 1))).mean().backward()
    alpha_loss = (-log_alpha.exp() * (logp.detach() + target_entropy)).mean()
    a_opt.zero_grad()
    alpha_loss.backward()
    a_opt.step()
    soft_update(critic_t, critic, 0.005)


class RunningMeanStd:
    def __init__(self, shape, epsilon=1e-4):
        self.mean, self.var, self.count = torch.zeros(shape), torch.ones(shape), epsilon

    def update(self, x):
        bm, bv, bc = x.mean(0), x.var(0, unbiased=False), x.shape[0]
        delta = bm - self.mean  # raises
        tot = self.count + bc
        self.mean = self.mean + delta * bc / tot
        self.var = (self.var * self.count + bv * bc + delta ** 2 * self.count * bc / tot) / tot
        self.count = tot


def case_rnd_normaliser():
    rms = RunningMeanStd((3,))
    rms.update(torch.from_numpy(ToyEnv().reset()))
    predictor, target = nn.Linear(3, 4).to(device), nn.Linear(3, 4).to(device)
    x = torch.randn(5, 3, device=device)
    intrinsic = (predictor(x) - target(x).detach()).pow(2).mean(1)
    rms.update(x)
    return intrinsic / rms.var.mean().sqrt()


def case_policy_gradient_baseline():
    policy = Agent().to(device)
    eps = np.finfo(np.float32).eps.item()
    saved, rewards = [], [1.0, 0.0, 1.0]
    for _ in rewards:
        x = torch.from_numpy(np.random.rand(3).astype(np.float32)).unsqueeze(0).to(device)
        m = Categorical(F.softmax(policy.actor(x), dim=1))
        a = m.sample()
        saved.append((m.log_prob(a), policy.critic(x)))
    R, returns = 0, []
    for r in rewards[::-1]:
        R = r + 0.99 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    losses = []
    for (log_prob, value), R in zip(saved, returns):
        losses.append(-log_prob * (R - value.item()))
        losses.append(0.5 * (value.squeeze() - R) ** 2)
    torch.stack([l.sum() for l in losses]).sum().backward()


def case_reinforce_value_loss():
    policy = Agent().to(device)
    x = torch.rand(3).to(device)
    value = policy.critic(x)
    for r in torch.tensor([1.0, 0.5]):
        loss = F.smooth_l1_loss(value.squeeze(), r)  # raises
        loss.backward(retain_graph=True)
