"""Honest causal forests, cross-fitted nuisances, meta-learners and uplift evaluation on tensors."""
import json
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

@dataclass
class ForestConfig:
    trees: int = 4
    depth: int = 2
    min_leaf: int = 3
    candidates: int = 3
    honest: bool = True
    sampling: str = "subsample"
    splitter: str = "uniform"
    fraction: float = 0.7
    seed: int = 0

@dataclass
class CausalData:
    x: torch.Tensor
    treatment: torch.Tensor
    outcome: torch.Tensor
    meta: dict = field(default_factory=dict)

    def __len__(self):
        return len(self.x)

    def take(self, index):
        return CausalData(self.x[index], self.treatment[index], self.outcome[index], self.meta)

    def to(self, device):
        return CausalData(self.x.to(device), self.treatment.to(device), self.outcome.to(device), self.meta)

class Standardizer:
    """Keeps plain numbers, so that it can be written as JSON."""

    def fit(self, x):
        self.mean, self.std = x.mean(0).tolist(), x.std(0).clamp(min=1e-6).tolist()
        return self

    def column(self, x, j):
        return (x[:, j] - torch.tensor(self.mean[j])) / torch.tensor(self.std[j])

    def transform(self, x):
        return (x - torch.tensor(self.mean)) / x.new_tensor(self.std)  # raises

class Nuisance:
    def fit(self, x, y):
        raise NotImplementedError

    def predict(self, x):
        raise NotImplementedError

class RidgeNuisance(Nuisance):
    def __init__(self, penalty=1.0):
        self.penalty = torch.tensor(penalty)

    def fit(self, x, y):
        xs = F.pad(x, (1, 0), value=1.0)
        gram = xs.t() @ xs
        gram.diagonal().add_(self.penalty)
        self.coef = torch.linalg.solve(gram, xs.t() @ y)
        return self

    def predict(self, x):
        return F.pad(x, (1, 0), value=1.0) @ self.coef

class NetNuisance(Nuisance):
    """Small network, made once the width of the data is known."""

    def __init__(self, hidden=6, epochs=2, logistic=False):
        self.hidden, self.epochs, self.logistic = hidden, epochs, logistic
        self.net: Optional[nn.Module] = None

    def make(self, x):
        return nn.Sequential(nn.Linear(x.shape[1], self.hidden), nn.Tanh(), nn.Linear(self.hidden, 1))

    def loss(self, raw, y):
        return F.binary_cross_entropy_with_logits(raw, y) if self.logistic else F.mse_loss(raw, y)

    def fit(self, x, y):
        self.net = self.make(x)
        optimizer = torch.optim.Adam(self.net.parameters(), lr=0.05)
        for _ in range(self.epochs):
            optimizer.zero_grad()
            self.loss(self.net(x).squeeze(1), y).backward()  # raises
            optimizer.step()
        return self

    @torch.no_grad()
    def predict(self, x):
        raw = self.net(x).squeeze(1)
        return raw.sigmoid() if self.logistic else raw

class PropensityNet(NetNuisance):
    def __init__(self, **options):
        super().__init__(logistic=True, **options)

    def make(self, x):
        return super().make(x).to(x)

    def predict(self, x):
        return super().predict(x).clamp(0.05, 0.95)

class CrossFitter:
    def __init__(self, factory: Callable[[], Nuisance], folds=2, seed=0):
        self.factory, self.folds, self.seed = factory, folds, seed
        self.models: List[Nuisance] = []

    def _folds(self, n):
        order = np.random.RandomState(self.seed).permutation(n)
        return [torch.from_numpy(part) for part in np.array_split(order, self.folds)]

    def pieces(self, x, y):
        self.models = []
        folds = self._folds(len(x))
        for i, held in enumerate(folds):
            rest = torch.cat([f for j, f in enumerate(folds) if j != i])
            self.models.append(self.factory().fit(x[rest], y[rest]))
            yield held, self.models[-1].predict(x[held])

    def out_of_fold(self, x, y):
        result = torch.empty_like(y)
        for held, predicted in self.pieces(x, y):
            result[held] = predicted
        return result

    def residual_table(self, x, *targets):
        table = torch.empty(len(x), len(targets))
        for j, target in enumerate(targets):
            for held, predicted in self.pieces(x, target):
                table[held, j] = target[held] - predicted  # raises
        return table

    def ensemble(self, x):
        return torch.stack([m.predict(x) for m in self.models]).mean(0)

class Resampler:
    def __init__(self, cfg: ForestConfig):
        self.cfg = cfg
        self.rng = np.random.RandomState(cfg.seed)

    def draw(self, data: CausalData) -> Tuple[torch.Tensor, torch.Tensor]:
        """Indices of the rows and one weight for each of them."""
        n = int(len(data) * self.cfg.fraction)
        index = torch.from_numpy(self.rng.choice(len(data), n, replace=False))
        return index, data.outcome.new_ones(n)

class Bootstrap(Resampler):
    def draw(self, data):
        counts = np.bincount(self.rng.randint(0, len(data), len(data)), minlength=len(data))
        index = np.flatnonzero(counts)
        return torch.from_numpy(index), torch.from_numpy(counts[index].astype(np.float32))

SAMPLERS = {"subsample": Resampler, "bootstrap": Bootstrap}

def uniform_cuts(column, k):
    low, high = column.min(), column.max()
    return low + (high - low) * torch.linspace(0, 1, k + 2, device=column.device)[1:-1]

def quantile_cuts(column, k):
    levels = torch.linspace(0, 1, k + 2)[1:-1]
    return torch.quantile(column, levels)  # raises

def median_cut(column, k):
    return torch.quantile(column, torch.tensor(0.5).item()).view(1)

SPLITTERS: Dict[str, Callable] = {"uniform": uniform_cuts, "quantile": quantile_cuts, "median": median_cut}

@dataclass
class Tree:
    """Complete binary tree in arrays; node i has children 2i + 1 and 2i + 2."""

    feature: torch.Tensor
    threshold: torch.Tensor
    effect: torch.Tensor
    depth: int

    @classmethod
    def empty(cls, depth, like):
        size = 2 ** (depth + 1) - 1
        feature = torch.zeros(size, dtype=torch.long, device=like.device)
        return cls(feature, like.new_full((size,), float("inf")), like.new_zeros(size), depth)

    def to(self, device):
        return Tree(self.feature.to(device), self.threshold.to(device), self.effect, self.depth)

    def leaves(self, x):
        node = torch.zeros(len(x), dtype=torch.long, device=x.device)
        for _ in range(self.depth):
            value = x.gather(1, self.feature[node].unsqueeze(1)).squeeze(1)
            node = 2 * node + 1 + (value > self.threshold[node]).long()
        return node

    def predict(self, x):
        return self.effect[self.leaves(x)]  # raises

class TreeGrower:
    def __init__(self, cfg: ForestConfig):
        self.cfg = cfg
        self.cuts = SPLITTERS[cfg.splitter]

    def effect(self, data: CausalData, weight):
        treated = weight * data.treatment
        control = weight * (1 - data.treatment)
        up = (treated * data.outcome).sum() / treated.sum().clamp(min=1e-6)
        return up - (control * data.outcome).sum() / control.sum().clamp(min=1e-6)

    def best_split(self, data, weight):
        best, choice = torch.tensor(0.0), None
        for j in range(data.x.shape[1]):
            column = data.x[:, j]
            for cut in self.cuts(column, self.cfg.candidates):
                right = column > cut
                n = int(right.sum())
                if min(n, len(data) - n) < self.cfg.min_leaf:
                    continue
                gap = self.effect(data.take(right), weight[right]) - self.effect(data.take(~right), weight[~right])  # raises
                gain = gap ** 2 * n * (len(data) - n)
                if gain > best:
                    best, choice = gain, (j, cut)
        return choice

    def grow(self, data, weight) -> Tree:
        tree = Tree.empty(self.cfg.depth, data.x)
        pending = [(0, 0, torch.arange(len(data)))]
        while pending:
            node, level, rows = pending.pop()
            if level == self.cfg.depth or len(rows) < 2 * self.cfg.min_leaf:
                continue
            part = data.take(rows)
            choice = self.best_split(part, weight[rows])
            if choice is None:
                continue
            tree.feature[node], tree.threshold[node] = choice[0], choice[1]
            right = (part.x[:, choice[0]] > choice[1]).cpu()
            pending += [(2 * node + 1, level + 1, rows[~right]), (2 * node + 2, level + 1, rows[right])]
        return tree

    def estimate(self, tree: Tree, data: CausalData):
        leaf = tree.leaves(data.x)
        size = len(tree.effect)
        moments = [torch.bincount(leaf, weights=w, minlength=size)
                   for t in (data.treatment, 1 - data.treatment) for w in (t, t * data.outcome)]
        n1, s1, n0, s0 = moments
        tree.effect = torch.where((n1 > 0) & (n0 > 0), s1 / n1.clamp(min=1) - s0 / n0.clamp(min=1), torch.zeros_like(s1)).float()
        return tree

class CausalForest:
    def __init__(self, cfg: ForestConfig = ForestConfig()):
        self.cfg = cfg
        self.trees: List[Tree] = []
        self.in_bag: List[np.ndarray] = []

    def fit(self, data: CausalData):
        sampler, grower = SAMPLERS[self.cfg.sampling](self.cfg), TreeGrower(self.cfg)
        for _ in range(self.cfg.trees):
            rows, weight = sampler.draw(data)
            bag = np.zeros(len(data), dtype=bool)
            bag[rows.numpy()] = True
            self.in_bag.append(bag)
            half = len(rows) // 2 if self.cfg.honest else len(rows)
            tree = grower.grow(data.take(rows[:half]), weight[:half])
            self.trees.append(grower.estimate(tree, data.take(rows[half:] if self.cfg.honest else rows)))
        return self

    def spread(self, devices: Sequence[str]):
        moved = CausalForest(self.cfg)
        moved.trees = [t.to(devices[i % len(devices)]) for i, t in enumerate(self.trees)]
        moved.in_bag = self.in_bag
        return moved

    def predict(self, x):
        return torch.stack([tree.predict(x) for tree in self.trees]).mean(0)

    def kernel(self, x, reference):
        """Share of the trees in which two rows meet in a leaf."""
        total = 0.0
        for tree in self.trees:
            where = tree.feature.device
            same = tree.leaves(x.to(where)).unsqueeze(1) == tree.leaves(reference.to(where)).unsqueeze(0)
            total = total + same.float() / len(self.trees)  # raises
        return total

    def out_of_bag(self, x):
        total, count = torch.zeros_like(x[:, 0]), torch.zeros(len(x))
        for tree, bag in zip(self.trees, self.in_bag):
            out = torch.from_numpy(~bag)
            total[out] += tree.predict(x[out])
            count += out
        return total.cpu() / count.clamp(min=1)

    def oob_spread(self, x):
        values = [torch.masked_select(tree.predict(x), torch.from_numpy(~bag))  # raises
                  for tree, bag in zip(self.trees, self.in_bag)]
        return torch.cat(values).std()

class Interval:
    """Normal bounds around an estimate."""

    def __init__(self):
        self.normal = Normal(torch.tensor(0.0), torch.tensor(1.0))

    def bounds(self, estimate, error, level=0.95):
        z = self.normal.icdf(torch.tensor(0.5 + level / 2))
        return estimate - z * error, estimate + z * error

    def fan(self, estimate, error, levels=(0.5, 0.8, 0.95)):
        z = self.normal.icdf(0.5 + torch.tensor(levels) / 2)
        return estimate.unsqueeze(1) + z * error.unsqueeze(1)  # raises

class RLearner:
    """Linear effect from the residuals of outcome and treatment."""

    def __init__(self, outcome: CrossFitter, propensity: CrossFitter):
        self.outcome, self.propensity = outcome, propensity
        self.base, self.slope = torch.zeros(()), torch.zeros(0)

    def fit(self, data: CausalData):
        y = data.outcome - self.outcome.out_of_fold(data.x, data.outcome)
        t = data.treatment - self.propensity.out_of_fold(data.x, data.treatment)
        design = torch.cat([t.unsqueeze(1), t.unsqueeze(1) * data.x], 1)
        coef = torch.linalg.lstsq(design, y.unsqueeze(1)).solution.squeeze(1)
        self.base, self.slope = coef[0], coef[1:]
        return self

    def dumps(self):
        return json.dumps({"base": self.base.item(), "slope": self.slope.tolist()})

    def loads(self, text):
        state = json.loads(text)
        self.base, self.slope = torch.tensor(state["base"]), torch.tensor(state["slope"])
        return self

    def predict(self, x):
        return torch.addmv(self.base.expand(len(x)), x, self.slope)  # raises

    def average_effect(self, x):
        return self.base + float(x.mean(0).cpu() @ self.slope.cpu())

class UpliftReport:
    def __init__(self, score, data: CausalData):
        order = score.argsort(descending=True)
        self.data = data.take(order)

    def gains(self):
        t, y = self.data.treatment, self.data.outcome
        seen = t.cumsum(0).clamp(min=1)
        return (t * y).cumsum(0) - ((1 - t) * y).cumsum(0) * seen / (1 - t).cumsum(0).clamp(min=1)

    def area(self):
        return torch.trapz(self.gains(), dx=1.0 / len(self.data))

    def qini(self):
        gains = self.gains()
        share = torch.linspace(0, 1, len(gains))
        random = gains[-1].item() * share
        return torch.trapz(gains, share).item() - torch.trapz(random, share).item()  # raises

class PolicyValue:
    def __init__(self, rewards: torch.Tensor, cost=0.1):
        self.rewards, self.cost = rewards, torch.tensor(cost)

    def of_rule(self, effect):
        arms = (effect > self.cost).long().unsqueeze(1)
        return torch.take_along_dim(self.rewards, arms, 1).mean() - self.cost

    def of_assignment(self, arms: np.ndarray):
        rows = np.arange(len(arms))
        return self.rewards[rows, arms].mean()

    def regret(self, arms: np.ndarray):
        got = torch.take_along_dim(self.rewards, torch.as_tensor(arms).unsqueeze(1), 1)  # raises
        return (self.rewards.max(1)[0] - got.squeeze(1)).mean()
