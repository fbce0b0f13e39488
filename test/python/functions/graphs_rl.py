import collections
import random
from dataclasses import dataclass
from typing import Callable, Deque, List, Tuple

import numpy as np
import torch as th
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical, Normal

Transition = collections.namedtuple("Transition", ("state", "action", "reward", "next_state", "done"))


class CorridorEnv:
    def __init__(self, n=6):
        self.n, self.pos = n, 0

    def reset(self):
        self.pos = 0
        return self._obs()

    def _obs(self):
        obs = np.zeros(self.n, dtype=np.float32)
        obs[self.pos] = 1.0
        return obs

    def step(self, action):
        self.pos = max(0, min(self.n - 1, self.pos + (1 if action else -1)))
        done = self.pos == self.n - 1
        return self._obs(), float(done) - 0.01, done, {}


class ReplayMemory(object):
    def __init__(self, capacity):
        self.memory: Deque[Transition] = collections.deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class QNet(nn.Module):
    def __init__(self, n_obs, n_act=2):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_obs, 16), nn.ReLU())
        self.head = nn.Linear(16, n_act)

    def forward(self, x):
        return self.head(self.body(x))


class DQNAgent:
    def __init__(self, env, device="cuda"):
        self.device = th.device(device)
        self.policy = QNet(env.n).to(self.device)
        self.target = QNet(env.n).to(self.device)
        self.target.load_state_dict(self.policy.state_dict())
        self.memory = ReplayMemory(50)
        self.opt = optim.Adam(self.policy.parameters(), 1e-3)
        self.eps = 0.3

    def act(self, obs):
        if random.random() < self.eps:
            return random.randrange(2)
        with th.no_grad():
            return self.policy(th.from_numpy(obs).to(self.device)[None]).argmax(1).item()

    def collect(self, env, n):
        obs = env.reset()
        for _ in range(n):
            a = self.act(obs)
            nxt, r, done, _ = env.step(a)
            self.memory.push(th.from_numpy(obs), th.tensor([a]), th.tensor([r]), None if done else th.from_numpy(nxt), done)
            obs = env.reset() if done else nxt

    def learn(self, batch_size=8, gamma=0.99):
        batch = Transition(*zip(*self.memory.sample(batch_size)))
        non_final = th.tensor([s is not None for s in batch.next_state], device=self.device)
        next_states = th.stack([s for s in batch.next_state if s is not None]).to(self.device)
        state = th.stack(batch.state).to(self.device)
        action = th.stack(batch.action).to(self.device)
        reward = th.cat(batch.reward).to(self.device)
        q = self.policy(state).gather(1, action)
        v = th.zeros(batch_size, device=self.device)
        with th.no_grad():
            v[non_final] = self.target(next_states).max(1)[0]
        loss = F.smooth_l1_loss(q, (reward + gamma * v).unsqueeze(1))
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(self.policy.parameters(), 100)
        self.opt.step()
        return loss.item()

    def td_error(self, t: Transition):
        state = t.state.to(self.device)
        q = self.policy(state)[t.action.item()]
        done = th.tensor([float(t.done)])
        nxt = self.target(t.next_state.to(self.device)).max() if t.next_state is not None else 0.0
        return (t.reward.to(self.device) + 0.99 * nxt * (1 - done) - q).abs()  # raises


def case_dqn_learns():
    random.seed(0)
    env = CorridorEnv()
    agent = DQNAgent(env)
    agent.collect(env, 20)
    return [agent.learn() for _ in range(2)]


def case_dqn_priorities():
    random.seed(1)
    env = CorridorEnv()
    agent = DQNAgent(env, device="cuda:1")
    agent.collect(env, 5)
    first = next(t for t in agent.memory.memory if t.next_state is not None)
    return float(agent.td_error(first))


class RolloutBuffer:
    def __init__(self, steps, n_obs, device):
        self.obs = th.zeros((steps, n_obs), device=device)
        self.logp = th.zeros(steps).to(device)
        self.values = th.zeros(steps).to(device)
        self.rewards = th.zeros(steps, device=device)
        self.dones = th.zeros(steps, device=device)

    def gae(self, last_value, gamma=0.99, lam=0.95):
        adv = th.zeros_like(self.rewards)
        last = 0
        for t in reversed(range(len(self.rewards))):
            nonterm = 1.0 - self.dones[t]
            nextv = last_value if t == len(self.rewards) - 1 else self.values[t + 1]
            delta = self.rewards[t] + gamma * nextv * nonterm - self.values[t]
            adv[t] = last = delta + gamma * lam * nonterm * last
        return adv, adv + self.values


class ActorCritic(nn.Module):
    def __init__(self, n_obs):
        super().__init__()
        self.shared = nn.Linear(n_obs, 8)
        self.pi, self.v = nn.Linear(8, 2), nn.Linear(8, 1)

    def forward(self, x):
        h = th.tanh(self.shared(x))
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


def case_ppo_rollout_and_update():
    device = th.device("cuda" if th.cuda.is_available() else "cpu")
    env, steps = CorridorEnv(), 8
    net = ActorCritic(env.n).to(device)
    buf = RolloutBuffer(steps, env.n, device)
    obs = th.Tensor(env.reset()).to(device)
    actions = th.zeros(steps, dtype=th.long, device=device)
    for t in range(steps):
        buf.obs[t] = obs
        with th.no_grad():
            dist, value = net(obs)
            a = dist.sample()
        nxt, r, done, _ = env.step(a.cpu().numpy())
        buf.rewards[t] = th.tensor(r)
        buf.values[t] = value
        buf.logp[t], actions[t] = dist.log_prob(a), a
        buf.dones[t] = done
        obs = th.Tensor(nxt).to(device)
    with th.no_grad():
        adv, ret = buf.gae(net(obs)[1])
    b_inds = np.arange(steps)
    np.random.shuffle(b_inds)
    for start in range(0, steps, 4):
        mb = b_inds[start:start + 4]
        dist, v = net(buf.obs[mb])
        ratio = (dist.log_prob(actions[mb]) - buf.logp[mb]).exp()
        pg = th.max(-adv[mb] * ratio, -adv[mb] * ratio.clamp(0.8, 1.2)).mean()
        (pg + 0.5 * F.mse_loss(v, ret[mb])).backward()
    return net.shared.weight.grad.norm()


def discounted(rewards, gamma=0.9):
    out = th.zeros(len(rewards))
    acc = 0.0
    for i in range(len(rewards) - 1, -1, -1):
        acc = rewards[i] + gamma * acc
        out[i] = acc
    return (out - out.mean()) / (out.std() + 1e-6)


def case_reinforce_returns():
    env = CorridorEnv()
    net = ActorCritic(env.n).cuda()
    obs, log_probs, rewards = env.reset(), [], []
    for _ in range(5):
        dist, _ = net(th.as_tensor(obs, device="cuda"))
        a = dist.sample()
        log_probs.append(dist.log_prob(a))
        obs, r, done, _ = env.step(a.item())
        rewards.append(r)
    returns = discounted(rewards)
    loss = [-lp * g for lp, g in zip(log_probs, returns)]
    return th.stack(loss).sum().backward()


def case_reinforce_returns_stacked():
    env = CorridorEnv()
    net = ActorCritic(env.n).cuda()
    obs, log_probs, rewards = env.reset(), [], []
    for _ in range(5):
        dist, _ = net(th.as_tensor(obs, device="cuda"))
        a = dist.sample()
        log_probs.append(dist.log_prob(a))
        obs, r, done, _ = env.step(a.item())
        rewards.append(r)
    returns = discounted(rewards)
    return -(th.stack(log_probs) * returns).sum()  # raises


class SquashedGaussian(nn.Module):
    def __init__(self, n_obs, low, high):
        super().__init__()
        self.net = nn.Linear(n_obs, 4)
        self.action_scale = th.FloatTensor((high - low) / 2.0)
        self.action_bias = th.FloatTensor((high + low) / 2.0)

    def forward(self, s):
        return self.net(s).chunk(2, -1)

    def sample(self, s):
        mean, log_std = self(s)
        normal = Normal(mean, log_std.clamp(-5, 2).exp())
        x_t = normal.rsample()
        y_t = th.tanh(x_t)
        action = y_t * self.action_scale + self.action_bias  # raises
        return action, normal.log_prob(x_t).sum(-1)

    def to(self, device):
        self.action_scale = self.action_scale.to(device)
        self.action_bias = self.action_bias.to(device)
        return super().to(device)


BOUNDS = np.array([-2.0, -1.0], dtype=np.float32), np.array([2.0, 1.0], dtype=np.float32)


def case_sac_policy_to():
    pi = SquashedGaussian(3, *BOUNDS).to("cuda:0")
    return pi.sample(th.randn(5, 3, device="cuda:0"))[0].shape


def case_sac_policy_cuda():
    pi = SquashedGaussian(3, *BOUNDS).cuda()
    return pi.sample(th.randn(5, 3).cuda())


# ---- graphs


@dataclass
class Graph:
    x: th.Tensor
    edge_index: th.Tensor
    y: th.Tensor = None

    @property
    def num_nodes(self):
        return self.x.size(0)

    def to(self, device):
        return Graph(*(v if v is None else v.to(device) for v in (self.x, self.edge_index, self.y)))


class MutableGraph(Graph):
    def to(self, device):
        for key, value in vars(self).items():
            if isinstance(value, th.Tensor):
                setattr(self, key, value.to(device))
        return self


def ring(n=6, feats=4, cls=Graph):
    src = th.arange(n)
    return cls(th.randn(n, feats), th.stack([src, (src + 1) % n]), th.randint(0, 3, (n,)))


def gcn_norm(edge_index, n):
    loops = th.arange(n, device=edge_index.device).repeat(2, 1)
    edge_index = th.cat([edge_index, loops], 1)
    deg = th.zeros(n, device=edge_index.device).scatter_add_(0, edge_index[1], th.ones(edge_index.size(1), device=edge_index.device))
    dis = deg.rsqrt()
    return edge_index, dis[edge_index[0]] * dis[edge_index[1]]


class GCNConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.lin = nn.Linear(i, o, bias=False)
        self.bias = nn.Parameter(th.zeros(o))

    def forward(self, x, edge_index):
        ei, w = gcn_norm(edge_index, x.size(0))
        h = self.lin(x)
        return th.zeros_like(h).index_add_(0, ei[1], h[ei[0]] * w[:, None]) + self.bias


class GNN(nn.Module):
    def __init__(self, i=4, h=8, o=3):
        super().__init__()
        self.convs = nn.ModuleList([GCNConv(i, h), GCNConv(h, o)])

    def forward(self, g):
        x = g.x
        for conv in self.convs[:-1]:
            x = conv(x, g.edge_index).relu()
        return self.convs[-1](x, g.edge_index)


def random_split_mask(n, frac=0.5):
    mask = th.zeros(n, dtype=th.bool)
    mask[th.randperm(n)[: max(1, int(n * frac))]] = True
    return mask


def case_node_classification_cpu_mask():
    g = ring().to("cuda")
    mask = random_split_mask(g.num_nodes)
    net = GNN().cuda()
    opt = optim.Adam(net.parameters())
    for _ in range(2):
        opt.zero_grad()
        out = net(g)
        F.cross_entropy(out[mask], g.y[mask]).backward()
        opt.step()
    return (out.argmax(-1)[~mask] == g.y[~mask]).float().mean()


def case_mutable_graph_moved_in_place():
    g = ring(cls=MutableGraph)
    net = GNN().to("cuda:3")
    g.to("cuda:3")
    return net(g).sum()


def case_graph_move_result_unused():
    g = ring()
    net = GNN().to("cuda:3")
    g.to("cuda:3")
    weights = net(g.to("cuda:3")).softmax(-1)
    return F.nll_loss(weights.log(), g.y)  # raises


def negative_sampling(edge_index, num_nodes, k):
    have = set((edge_index[0] * num_nodes + edge_index[1]).tolist())
    cand = [i for i in range(num_nodes ** 2) if i not in have]
    pick = th.tensor(random.sample(cand, k))
    return th.stack([pick // num_nodes, pick % num_nodes])


def link_scores(z, ei):
    return (z[ei[0]] * z[ei[1]]).sum(-1)


def case_link_prediction_logits():
    g = ring().to("cuda")
    z = GNN().cuda()(g)
    neg = negative_sampling(g.edge_index, g.num_nodes, 6)
    pos_s, neg_s = link_scores(z, g.edge_index), link_scores(z, neg)
    return F.softplus(-pos_s).mean() + F.softplus(neg_s).mean()


def case_link_prediction_edges_joined():
    g = ring().to("cuda")
    z = GNN().cuda()(g)
    neg = negative_sampling(g.edge_index, g.num_nodes, 6)
    both = th.cat([g.edge_index, neg], dim=-1)  # raises
    return F.binary_cross_entropy_with_logits(link_scores(z, both), th.cat([th.ones(6), th.zeros(6)]).cuda())
