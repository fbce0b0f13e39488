"""World models for control: recurrent state-space model, imagination, planners and replay."""
import copy
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import distributions as td


@dataclass
class WorldConfig:
    obs_dim: int = 6
    action_dim: int = 2
    deter: int = 12
    groups: int = 3
    classes: int = 4
    hidden: int = 16
    bins: int = 9
    horizon: int = 4
    gamma: float = 0.95
    lam: float = 0.9
    free_nats: float = 1.0
    unimix: float = 0.01

    @property
    def stoch(self) -> int:
        return self.groups * self.classes


class LatentState(NamedTuple):
    deter: torch.Tensor
    stoch: torch.Tensor
    logits: torch.Tensor

    @property
    def feature(self):
        return torch.cat([self.deter, self.stoch], dim=-1)

    def map(self, fn: Callable[[torch.Tensor], torch.Tensor]) -> "LatentState":
        return LatentState(*(fn(value) for value in self))

    @staticmethod
    def stack(states: List["LatentState"], dim: int = 1) -> "LatentState":
        return LatentState(*(torch.stack(values, dim) for values in zip(*states)))


def symlog(x):
    return x.sign() * torch.log1p(x.abs())


def symexp(x):
    return x.sign() * torch.expm1(x.abs())


def mlp(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.SiLU(), nn.Linear(hidden, outputs))


def to_torch(tree, device):
    if isinstance(tree, dict):
        return {key: to_torch(value, device) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(to_torch(value, device) for value in tree)
    return torch.as_tensor(tree).to(device)


class DistributionHead(nn.Module):
    """Base: `params` gives what `loss` and `mean` of the heads read."""

    def __init__(self, config: WorldConfig, outputs: int):
        super().__init__()
        self.net = mlp(config.deter + config.stoch, config.hidden, outputs)

    def params(self, feature):
        return self.net(feature)

    def loss(self, feature, target):
        raise NotImplementedError


class SymlogHead(DistributionHead):
    def mean(self, feature):
        return symexp(self.params(feature))

    def loss(self, feature, target):
        return (self.params(feature) - symlog(target)).pow(2).sum(-1)


class TwoHotHead(DistributionHead):
    def __init__(self, config):
        super().__init__(config, config.bins)
        self.register_buffer("bins", torch.linspace(-4.0, 4.0, config.bins))

    def mean(self, feature):
        return symexp((self.params(feature).softmax(-1) * self.bins).sum(-1))

    def two_hot(self, target):
        position = (symlog(target).clamp(-4.0, 4.0) - self.bins[0]) / (self.bins[1] - self.bins[0])
        low = position.floor().long().clamp(max=len(self.bins) - 2)
        upper = (position - low).unsqueeze(-1)
        return F.one_hot(low, len(self.bins)) * (1 - upper) + F.one_hot(low + 1, len(self.bins)) * upper

    def loss(self, feature, target):
        return -(self.two_hot(target) * self.params(feature).log_softmax(-1)).sum(-1)


class ContinueHead(DistributionHead):
    def __init__(self, config):
        super().__init__(config, 1)
        self.gamma = torch.tensor([config.gamma])

    def mean(self, feature):
        return torch.sigmoid(self.params(feature)).squeeze(-1)

    def discount(self, feature):
        alive = self.mean(feature)
        return alive * self.gamma.expand_as(alive)  # raises

    def loss(self, feature, target):
        return F.binary_cross_entropy_with_logits(self.params(feature).squeeze(-1), target.float(), reduction="none")


class RSSM(nn.Module):
    def __init__(self, config: WorldConfig):
        super().__init__()
        self.config = config
        self.cell = nn.GRUCell(config.hidden, config.deter)
        self.inputs = nn.Linear(config.stoch + config.action_dim, config.hidden)
        self.prior_net = mlp(config.deter, config.hidden, config.stoch)
        self.post_net = mlp(config.deter + config.hidden, config.hidden, config.stoch)
        self.learned_initial = nn.Parameter(torch.zeros(config.deter))
        self._free = torch.full((1,), config.free_nats)

    def initial(self, batch: int, device=None) -> LatentState:
        device = device or self.learned_initial.device
        deter = torch.tanh(self.learned_initial).expand(batch, -1).to(device)
        logits = torch.zeros(batch, self.config.groups, self.config.classes, device=device)
        return LatentState(deter, torch.zeros(batch, self.config.stoch, device=device), logits)

    def _unimix(self, flat):
        logits = flat.unflatten(-1, (self.config.groups, self.config.classes))
        probs = (1 - self.config.unimix) * logits.softmax(-1) + self.config.unimix / self.config.classes
        return probs.log()

    def sample(self, logits):
        index = td.Categorical(logits=logits).sample()
        one_hot = F.one_hot(index, self.config.classes).to(logits.dtype)
        return (one_hot + logits.exp() - logits.exp().detach()).flatten(-2)

    def _advance(self, state, action):
        return self.cell(F.silu(self.inputs(torch.cat([state.stoch, action], -1))), state.deter)

    def imagine_step(self, state: LatentState, action) -> LatentState:
        deter = self._advance(state, action)
        logits = self._unimix(self.prior_net(deter))
        return LatentState(deter, self.sample(logits), logits)

    def reset_where(self, state: LatentState, first) -> LatentState:
        fresh = self.initial(len(first), device=state.deter.device)
        return LatentState(*(torch.where(first.view(-1, *[1] * (old.dim() - 1)), new, old)
                             for new, old in zip(fresh, state)))

    def observe_step(self, state, action, embed, first):
        state = self.reset_where(state, first)
        prior = self.imagine_step(state, action * (~first)[:, None])
        logits = self._unimix(self.post_net(torch.cat([prior.deter, embed], -1)))
        return prior, LatentState(prior.deter, self.sample(logits), logits)

    def kl(self, post, prior):
        def divergence(a, b):
            return (a.exp() * (a - b)).sum((-1, -2))
        free = self.config.free_nats
        dyn, rep = divergence(post.detach(), prior), divergence(post, prior.detach())
        return 0.5 * dyn.clamp_min(free) + 0.1 * rep.clamp_min(free)

    def free_kl(self, post, prior):
        each = (post.exp() * (post - prior)).sum((-1, -2))
        return torch.maximum(each, self._free).mean()  # raises


class Actor(nn.Module):
    def __init__(self, config: WorldConfig):
        super().__init__()
        self.net = mlp(config.deter + config.stoch, config.hidden, 2 * config.action_dim)
        self.low, self.high = -np.ones(config.action_dim, np.float32), np.ones(config.action_dim, np.float32)

    def forward(self, feature) -> td.Distribution:
        mean, std = self.net(feature).chunk(2, -1)
        return td.Independent(td.Normal(torch.tanh(mean), F.softplus(std) + 0.1), 1)

    def clipped(self, feature):
        action = self(feature).rsample()
        bounds = torch.from_numpy(np.stack([self.low, self.high])).to(action)
        return torch.maximum(torch.minimum(action, bounds[1]), bounds[0])

    def explore(self, feature, noise: float = 0.3):
        action = self(feature).mean
        jitter = td.Normal(torch.zeros(action.shape), noise).sample()
        return (action + jitter).clamp(-1, 1)  # raises


class ReturnNormalizer:
    """Range of the returns between two quantiles, averaged exponentially."""

    def __init__(self, decay: float = 0.99, device=None):
        self.decay = decay
        self.low = torch.zeros((), device=device)
        self.high = torch.zeros((), device=device)

    def update(self, returns) -> Tuple[torch.Tensor, torch.Tensor]:
        low, high = torch.quantile(returns.detach().cpu().flatten(), torch.tensor([0.05, 0.95])).unbind()
        self.low = self.decay * self.low + (1 - self.decay) * low
        self.high = self.decay * self.high + (1 - self.decay) * high
        return self.low, (self.high - self.low).clamp_min(1.0)

    def __call__(self, returns):
        offset, scale = self.update(returns)
        return (returns - offset) / scale

    def spread(self, returns, levels=(0.1, 0.5, 0.9)):
        return torch.quantile(returns.flatten(), torch.tensor(levels))  # raises


class SlowCopy:
    def __init__(self, source: nn.Module, rate: float = 0.02):
        self.source, self.rate = source, rate
        self.shadow = copy.deepcopy(source).requires_grad_(False)

    @torch.no_grad()
    def update(self):
        for slow, fast in zip(self.shadow.parameters(), self.source.parameters()):
            slow.data = slow.data.to(fast.device).lerp(fast.data, self.rate)
        for slow, fast in zip(self.shadow.buffers(), self.source.buffers()):
            slow.data = fast.data.clone()

    def regularizer(self, feature):
        target = self.shadow.params(feature).softmax(-1)
        return F.cross_entropy(self.source.params(feature).flatten(0, -2), target.flatten(0, -2))


class EpisodeReplay:
    def __init__(self, capacity: int, length: int, device="cpu", seed: int = 0):
        self.episodes: deque = deque(maxlen=capacity)
        self.length, self.device = length, device
        self.rng = np.random.RandomState(seed)
        self.priorities = torch.ones(capacity)
        self._open: Dict[str, List[Any]] = defaultdict(list)

    def add(self, last: bool = False, **step):
        for key, value in step.items():
            value = value.detach().cpu().numpy() if torch.is_tensor(value) else value
            self._open[key].append(np.asarray(value))
        if last:
            self.episodes.append({key: np.stack(values) for key, values in self._open.items()})
            self._open.clear()

    def _slice(self, episode):
        start = self.rng.randint(0, len(next(iter(episode.values()))) - self.length + 1)
        return {key: value[start:start + self.length] for key, value in episode.items()}

    def sample(self, batch: int) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
        weights = self.priorities[:len(self.episodes)]
        index = torch.multinomial(weights, batch, replacement=True)
        parts = [self._slice(self.episodes[i]) for i in index.tolist()]
        stacked = {key: np.stack([part[key] for part in parts]) for key in parts[0]}
        return index, to_torch(stacked, self.device)

    def importance(self, index, losses, beta: float = 0.5):
        chance = self.priorities[index] / self.priorities[:len(self.episodes)].sum()
        weights = (len(self.episodes) * chance).pow(-beta)
        return (weights / weights.max() * losses).mean()  # raises

    def reprioritize(self, index, losses):
        self.priorities[index] = losses.detach().abs().to(self.priorities.device) + 1e-3


class CemPlanner:
    def __init__(self, config: WorldConfig, rssm: RSSM, score: Callable[[torch.Tensor], torch.Tensor],
                 candidates: int = 8, elites: int = 3, rounds: int = 2):
        self.config, self.rssm, self.score = config, rssm, score
        self.candidates, self.elites, self.rounds = candidates, elites, rounds
        self._warm: Optional[torch.Tensor] = None

    def _rollout(self, state: LatentState, plans):
        state = state.map(lambda value: value.repeat_interleave(len(plans), 0))
        total = 0.0
        for t in range(plans.shape[1]):
            state = self.rssm.imagine_step(state, plans[:, t])
            total = total + self.score(state.feature)
        return total

    @torch.no_grad()
    def plan(self, state: LatentState, refine: bool = True) -> np.ndarray:
        shape = (self.config.horizon, self.config.action_dim)
        mean = torch.zeros(shape, device=state.deter.device)
        std = torch.ones_like(mean)
        for _ in range(self.rounds if refine else 1):
            noise = torch.randn((self.candidates,) + shape)
            plans = (mean + std * noise.to(mean.device)).clamp(-1, 1)
            best = self._rollout(state, plans).topk(self.elites).indices.cpu()
            mean, std = plans[best].mean(0), plans[best].std(0)
        self._warm = mean.roll(-1, 0).cpu()
        return mean[0].cpu().numpy()

    @torch.no_grad()
    def replan(self, state: LatentState, blend: float = 0.5):
        """Follows on the plan of the step before."""
        plans = torch.randn(self.candidates, self.config.horizon, self.config.action_dim, device=state.deter.device)
        if self._warm is not None:
            plans = torch.lerp(plans, self._warm.expand_as(plans), blend)  # raises
        return plans[self._rollout(state, plans.clamp(-1, 1)).argmax()]


class DisagreementEnsemble(nn.Module):
    def __init__(self, config: WorldConfig, members: int = 3):
        super().__init__()
        width = config.deter + config.stoch
        self.members = nn.ModuleList(mlp(width, config.hidden, config.stoch) for _ in range(members))
        self.baseline = {"mean": torch.zeros(1), "steps": 0}

    def forward(self, feature):
        return torch.stack([member(feature) for member in self.members]).var(0).mean(-1)

    def bonus(self, feature):
        raw = self(feature).detach()
        self.baseline["steps"] += 1
        self.baseline["mean"] += (raw.mean().item() - self.baseline["mean"]) / self.baseline["steps"]
        return raw - self.baseline["mean"]  # raises


class WorldModel(nn.Module):
    def __init__(self, config: WorldConfig):
        super().__init__()
        self.config = config
        self.encoder = mlp(config.obs_dim, config.hidden, config.hidden)
        self.rssm = RSSM(config)
        self.decoder = SymlogHead(config, config.obs_dim)
        self.reward = TwoHotHead(config)
        self.cont = ContinueHead(config)
        self.loss_scales = {"kl": torch.tensor(0.5), "obs": torch.tensor(1.0), "reward": torch.tensor(1.0),
                            "cont": torch.tensor(1.0)}

    def observe(self, batch) -> Tuple[LatentState, LatentState]:
        state, priors, posts = self.rssm.initial(len(batch["obs"])), [], []
        embed = self.encoder(symlog(batch["obs"]))
        for t in range(embed.shape[1]):
            prior, state = self.rssm.observe_step(state, batch["action"][:, t], embed[:, t], batch["first"][:, t])
            priors.append(prior)
            posts.append(state)
        return LatentState.stack(priors), LatentState.stack(posts)

    def losses(self, batch):
        prior, post = self.observe(batch)
        each = {"kl": self.rssm.kl(post.logits, prior.logits).mean(),
                "obs": self.decoder.loss(post.feature, batch["obs"]).mean(),
                "reward": self.reward.loss(post.feature, batch["reward"]).mean(),
                "cont": self.cont.loss(post.feature, ~batch["last"]).mean()}
        return sum(self.loss_scales[name] * value for name, value in each.items()), each, post

    def imagine(self, start: LatentState, actor: Actor):
        state, states = start.map(lambda value: value.detach()), []
        for _ in range(self.config.horizon):
            state = self.rssm.imagine_step(state, actor.clipped(state.feature))
            states.append(state)
        return LatentState.stack(states).feature

    @torch.no_grad()
    def report(self, batch) -> Dict[str, np.ndarray]:
        _, post = self.observe(batch)
        error = (self.decoder.mean(post.feature) - batch["obs"]).abs().mean((0, 2))
        truth = np.asarray(batch["reward"].cpu()).mean(0)
        return {"error": error.tolist(), "reward": truth - np.asarray(self.reward.mean(post.feature)).mean(0)}  # raises


class LatentAgent:
    """Keeps the state of the environments between calls of `act`."""

    def __init__(self, model: WorldModel, actor: Actor, envs: int):
        self.model, self.actor, self.envs = model, actor, envs
        self.state: Optional[LatentState] = None
        self.action = torch.zeros(envs, model.config.action_dim)

    @torch.no_grad()
    def act(self, obs: np.ndarray, first: np.ndarray) -> np.ndarray:
        device = self.model.rssm.learned_initial.device
        obs, first = to_torch((obs, first), device)
        if self.state is None:
            self.state = self.model.rssm.initial(self.envs)
        embed = self.model.encoder(symlog(obs))
        _, self.state = self.model.rssm.observe_step(self.state, self.action.to(device), embed, first)
        self.action = self.actor.clipped(self.state.feature)
        return self.action.cpu().numpy()

    def forget(self, done: np.ndarray):
        keep = torch.from_numpy(~done).float()[:, None]
        self.state = self.state._replace(deter=self.state.deter * keep)  # raises
