import math
from functools import partial
from itertools import accumulate, chain, cycle, islice
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Metric(nn.Module):
    """Base class: states are plain attributes that move with the metric."""

    def __init__(self):
        super().__init__()
        self._defaults = {}

    def add_state(self, name, default):
        self._defaults[name] = default.clone()
        setattr(self, name, default)

    def reset(self):
        for k, v in self._defaults.items():
            setattr(self, k, v.clone().to(self.state_device))

    @property
    def state_device(self):
        return getattr(self, next(iter(self._defaults))).device

    def _apply(self, fn):
        super()._apply(fn)
        for k in self._defaults:
            setattr(self, k, fn(getattr(self, k)))
        return self

    def forward(self, *args):
        self.update(*args)
        return self.compute()


class Accuracy(Metric):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes
        self.add_state("hit", torch.zeros(classes))
        self.add_state("seen", torch.zeros(classes))

    def update(self, pred, target):
        self.seen += torch.bincount(target, minlength=self.classes)
        self.hit += torch.bincount(target[pred.argmax(-1) == target], minlength=self.classes)

    def compute(self):
        return (self.hit / self.seen.clamp(min=1)).mean()


class Calibration(Metric):
    def __init__(self, bins=5):
        super().__init__()
        self.edges = torch.linspace(0, 1, bins + 1)
        self.add_state("gap", torch.zeros(bins))

    def update(self, pred, target):
        conf, label = pred.softmax(-1).max(-1)
        right = (label == target).float()
        slot = torch.bucketize(conf, self.edges[1:-1])  # raises
        self.gap.index_add_(0, slot, conf - right)

    def compute(self):
        return self.gap.abs().sum()


def case_accuracy_states_follow_metric():
    metric = Accuracy(3).to(device)
    for _ in range(2):
        value = metric(torch.randn(5, 3, device=device), torch.randint(3, (5,), device=device))
    metric.reset()
    metric.update(torch.randn(5, 3, device=device), torch.randint(3, (5,), device=device))
    return value, metric.compute()


def case_calibration_bin_edges():
    metric = Calibration().to(device)
    return metric(torch.randn(5, 3, device=device), torch.randint(3, (5,), device=device))


def case_metric_left_on_host():
    model = nn.Linear(4, 3).to(device)
    metric = Accuracy(3)
    for _ in range(2):
        x, y = torch.randn(6, 4), torch.randint(3, (6,))
        metric.update(model(x.to(device)).detach().cpu(), y)
    return metric.compute()


def retrieval_recall(query, gallery, relevant, k=2):
    sims = F.normalize(query, dim=-1) @ F.normalize(gallery, dim=-1).t()
    top = sims.topk(k, dim=1).indices
    return np.mean([len(set(row.tolist()) & set(rel)) / len(rel) for row, rel in zip(top, relevant)])


def case_recall_with_python_sets():
    return retrieval_recall(torch.randn(3, 4, device=device), torch.randn(6, 4, device=device), [[0], [1, 2], [5]])


def ndcg(scores, relevance, k=3):
    order = scores.argsort(dim=-1, descending=True)[:, :k]
    gains = relevance.gather(1, order)
    discount = 1 / torch.log2(torch.arange(2, k + 2).float())
    dcg = (gains * discount).sum(-1)  # raises
    ideal = (relevance.sort(dim=-1, descending=True)[0][:, :k] * discount).sum(-1)
    return (dcg / ideal.clamp(min=1e-9)).mean()


class MatrixFactorization(nn.Module):
    def __init__(self, users, items, dim=4):
        super().__init__()
        self.user, self.item = nn.Embedding(users, dim), nn.Embedding(items, dim)
        self.mean = 3.5

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(-1) + self.mean

    def all_scores(self, u):
        return self.user(u) @ self.item.weight.T  # raises


class BPRSampler:
    def __init__(self, interactions, items):
        self.interactions, self.items = interactions, items
        self.rng = np.random.default_rng(0)

    def __iter__(self):
        while True:
            u, i = self.interactions[self.rng.integers(len(self.interactions))]
            yield u, i, int(self.rng.integers(self.items))


def case_bpr_training():
    model = MatrixFactorization(4, 6).to(device)
    sampler = BPRSampler([(0, 1), (1, 3), (2, 5)], 6)
    opt = torch.optim.Adagrad(model.parameters(), lr=0.1)
    for _ in range(2):
        u, i, j = torch.tensor(list(islice(sampler, 4))).to(device).t()
        loss = -F.logsigmoid(model(u, i) - model(u, j)).mean()
        opt.zero_grad(), loss.backward()
    return loss.item()


def case_ranking_ndcg():
    model = MatrixFactorization(4, 6).to(device)
    scores = model.all_scores(torch.arange(4, device=device)).detach()
    return ndcg(scores, torch.randint(0, 3, (4, 6), device=device).float())


def case_seen_items_masked_out():
    model = MatrixFactorization(4, 6).to(device)
    seen = {0: [1], 1: [3, 2], 2: [5]}
    users = torch.arange(3)
    with torch.no_grad():
        scores = model.all_scores(users.to(device))
    for row, u in enumerate(users.tolist()):
        scores[row, torch.tensor(seen[u])] = -math.inf
    ranks = scores.cpu().argsort(-1, descending=True)
    return ranks[users, 0]


def case_embedding_of_host_ids():
    model = MatrixFactorization(4, 6).to(device)
    users = torch.arange(3)
    return model.all_scores(users)


# ---------------------------------------------------------------- gaussian processes


class RBF(nn.Module):
    def __init__(self, ard=2):
        super().__init__()
        self.raw_ls = nn.Parameter(torch.zeros(ard))
        self.raw_var = nn.Parameter(torch.tensor(0.0))

    def forward(self, a, b=None, diag=False):
        b = a if b is None else b
        if diag:
            return F.softplus(self.raw_var).expand(a.shape[0])
        ls = F.softplus(self.raw_ls)
        return F.softplus(self.raw_var) * torch.exp(-0.5 * torch.cdist(a / ls, b / ls) ** 2)  # raises


class ExactGP(nn.Module):
    def __init__(self, x, y, kernel):
        super().__init__()
        self.x, self.y = x, y
        self.kernel = kernel
        self.raw_noise = nn.Parameter(torch.tensor(-2.0))

    def _cov(self):
        k = self.kernel(self.x)
        return k + F.softplus(self.raw_noise) * torch.eye(len(self.x), device=k.device)

    def nll(self):
        L = torch.linalg.cholesky(self._cov())
        alpha = torch.cholesky_solve(self.y[:, None], L)
        return 0.5 * (self.y @ alpha).squeeze() + L.diagonal().log().sum()

    def posterior(self, xs):
        L = torch.linalg.cholesky(self._cov())
        ks = self.kernel(self.x, xs)
        v = torch.linalg.solve_triangular(L, ks, upper=False)
        mean = ks.t() @ torch.cholesky_solve(self.y[:, None], L)
        cov = self.kernel(xs) - v.t() @ v
        return mean.squeeze(-1), cov

    def sample(self, xs, n=2, jitter=1e-4):
        mean, cov = self.posterior(xs)
        L = torch.linalg.cholesky(cov + jitter * torch.eye(len(xs)))  # raises
        return mean + (L @ torch.randn(len(xs), n, device=xs.device)).t()


def make_gp():
    x = torch.rand(6, 2)
    y = torch.sin(x.sum(-1))
    gp = ExactGP(x.to(device), y.to(device), RBF())
    return gp.to(device)


def case_gp_fit_and_predict():
    gp = make_gp()
    opt = torch.optim.LBFGS(gp.parameters(), max_iter=2)

    def closure():
        opt.zero_grad()
        loss = gp.nll()
        loss.backward()
        return loss

    opt.step(closure)
    mean, cov = gp.posterior(torch.rand(3, 2, device=device))
    return mean.detach().cpu().numpy(), cov.diagonal()


def case_gp_sampling_jitter():
    gp = make_gp()
    with torch.no_grad():
        return gp.sample(torch.rand(3, 2).to(device))


def case_gp_training_data_not_registered():
    x = torch.rand(6, 2)
    gp = ExactGP(x, torch.sin(x.sum(-1)), RBF())
    gp.cuda()
    return gp.posterior(torch.rand(3, 2).cuda())


# ---------------------------------------------------------------- contrastive


class MemoryBank:
    def __init__(self, size, dim):
        self.keys = F.normalize(torch.randn(size, dim), dim=-1)
        self.ptr = 0

    def enqueue(self, k):
        n = k.size(0)
        self.keys[self.ptr:self.ptr + n] = k.detach()
        self.ptr = (self.ptr + n) % len(self.keys)


class QueueModule(nn.Module):
    def __init__(self, size=8, dim=4):
        super().__init__()
        self.register_buffer("queue", F.normalize(torch.randn(dim, size), dim=0))
        self.register_buffer("ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def enqueue(self, k):
        p = int(self.ptr)
        self.queue[:, p:p + k.size(0)] = k.t()
        self.ptr[0] = (p + k.size(0)) % self.queue.size(1)


def info_nce(q, k, negatives, tau=0.1):
    pos = (q * k).sum(-1, keepdim=True)
    neg = q @ negatives
    logits = torch.cat([pos, neg], 1) / tau
    return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long, device=q.device))


def case_moco_queue_buffer():
    encoder, bank = nn.Linear(5, 4).to(device), QueueModule().to(device)
    x = torch.randn(4, 5, device=device)
    q, k = F.normalize(encoder(x), dim=-1), F.normalize(encoder(x + 0.1), dim=-1)
    loss = info_nce(q, k.detach(), bank.queue.clone())
    bank.enqueue(k)
    return loss.backward()


def case_memory_bank_slices_then_moved():
    encoder, bank = nn.Linear(5, 4).to(device), MemoryBank(8, 4)
    k = F.normalize(encoder(torch.randn(4, 5).to(device)), dim=-1)
    bank.enqueue(k)
    return info_nce(k, k, bank.keys.to(k.device).t())


def nt_xent(z1, z2, tau=0.5):
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    n = z1.size(0)
    sim = z @ z.t() / tau
    sim = sim.masked_fill(torch.eye(2 * n).bool(), -9e15)  # raises
    target = torch.cat([torch.arange(n) + n, torch.arange(n)])
    return F.cross_entropy(sim, target.to(sim.device))


def nt_xent_indexed(z1, z2, tau=0.5):
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    n = z1.size(0)
    sim = z @ z.t() / tau
    sim[torch.eye(2 * n).bool()] = -9e15
    rows = torch.arange(2 * n)
    return -(sim - sim.logsumexp(-1, keepdim=True))[rows, (rows + n) % (2 * n)].mean()


def case_simclr_masked_fill():
    return nt_xent(torch.randn(3, 4, device=device), torch.randn(3, 4, device=device))


def case_simclr_mask_as_index():
    return nt_xent_indexed(torch.randn(3, 4, device=device), torch.randn(3, 4, device=device))


# ---------------------------------------------------------------- simulations, time series


class HeatEquation:
    def __init__(self, n=8, alpha=0.1):
        self.n, self.alpha = n, alpha
        self.kernel = torch.tensor([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]]).view(1, 1, 3, 3)

    def initial(self):
        u = torch.zeros(1, 1, self.n, self.n)
        u[..., self.n // 2, self.n // 2] = 1
        return u

    def step(self, u):
        return u + self.alpha * F.conv2d(F.pad(u, (1,) * 4, mode="replicate"), self.kernel)  # raises

    def run(self, steps, device="cpu"):
        u = self.initial().to(device)
        for _ in range(steps):
            u = self.step(u)
        return u


def case_heat_on_host_shown():
    u = HeatEquation().run(3)
    return torch.histc(u, 5).to(device) / torch.tensor(float(u.numel()))


def case_heat_on_gpu():
    return HeatEquation().run(3, device)


def euler_maruyama(drift, x, steps, dt):
    noise = np.sqrt(dt) * np.random.randn(steps, *x.shape).astype("float32")
    path = [x]
    for t in range(steps):
        x = x + drift(x) * dt + torch.from_numpy(noise[t]).to(x)
        path.append(x)
    return torch.stack(path)


def case_sde_numpy_noise():
    theta = torch.tensor(0.7)
    path = euler_maruyama(lambda x: -theta * x, torch.ones(3, device=device), 4, 0.1)
    return path[-1].cpu().numpy()


def case_sde_plot_means():
    path = euler_maruyama(torch.neg, torch.ones(3, device=device), 4, 0.1)
    means = path.mean(1)
    ticks = np.arange(len(means))
    return np.interp(0.5, ticks, means.detach().numpy())  # raises


class Normalizer:
    def fit(self, x):
        self.mu, self.sd = x.mean(0, keepdim=True), x.std(0, keepdim=True)
        return self

    def encode(self, x):
        return (x - self.mu) / self.sd

    def decode(self, z):
        return z * self.sd + self.mu  # raises

    def cuda(self):
        self.mu, self.sd = self.mu.cuda(), self.sd.cuda()
        return self


def case_forecast_normalizer_moved():
    series = torch.randn(20, 3)
    norm = Normalizer().fit(series)
    z = norm.encode(series)
    model = nn.GRU(3, 3, batch_first=True).cuda()
    out, _ = model(z[None].cuda())
    return norm.cuda().decode(out)


def case_forecast_normalizer_forgotten():
    series = torch.randn(20, 3)
    norm = Normalizer().fit(series)
    z = norm.encode(series).to(device)
    model = nn.GRU(3, 3, batch_first=True).to(device)
    h = torch.zeros(1, 1, 3, device=device)
    out, h = model(z[None], h)
    return norm.decode(out)


def case_gru_initial_state():
    model = nn.GRU(3, 3, batch_first=True).to(device)
    hidden = torch.zeros(1, 2, 3)
    for chunk in torch.randn(2, 8, 3).to(device).split(4, dim=1):
        out, hidden = model(chunk, hidden)  # raises
    return out
