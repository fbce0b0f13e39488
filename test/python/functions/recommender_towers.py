"""Two tower and session recommenders + serving glue."""
from __future__ import annotations

import contextlib
import copy
import io
import random
from functools import lru_cache, partial
from typing import Any, Iterator, Mapping, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset


class Sample(NamedTuple):
    user: Tensor
    item: Tensor
    dense: Tensor
    label: Tensor


class Clicks(Dataset):
    def __init__(self, n=12, users=5, items=7):
        g = torch.Generator().manual_seed(0)
        self.u = torch.randint(0, users, (n,), generator=g)
        self.i = torch.randint(0, items, (n,), generator=g)
        self.d = torch.rand(n, 3, generator=g)
        self.y = torch.randint(0, 2, (n,), generator=g).float()

    def __len__(self):
        return len(self.u)

    def __getitem__(self, k):
        return Sample(self.u[k], self.i[k], self.d[k], self.y[k])


def to_device(obj: Any, device) -> Any:
    if isinstance(obj, Tensor):
        return obj.to(device, non_blocking=True)
    if isinstance(obj, Mapping):
        return {k: to_device(v, device) for k, v in obj.items()}
    if isinstance(obj, tuple) and hasattr(obj, "_fields"):
        return type(obj)(*(to_device(v, device) for v in obj))
    if isinstance(obj, (list, tuple)):
        return type(obj)(to_device(v, device) for v in obj)
    return obj


class Prefetcher:
    """Iterates a loader and moves each batch."""

    def __init__(self, loader, device):
        self.loader, self.device = loader, device

    def __len__(self):
        return len(self.loader)

    def __iter__(self) -> Iterator[Sample]:
        for batch in self.loader:
            yield to_device(batch, self.device)


class Tower(nn.Module):
    def __init__(self, n, dim=4, extra=0):
        super().__init__()
        self.table = nn.Embedding(n, dim)
        self.mlp = nn.Sequential(nn.Linear(dim + extra, dim), nn.ReLU(), nn.Linear(dim, dim))

    def forward(self, ids, dense=None):
        x = self.table(ids)  # raises
        if dense is not None:
            x = torch.cat([x, dense], dim=-1)
        return self.mlp(x)


class TwoTower(nn.Module):
    def __init__(self, users=5, items=7):
        super().__init__()
        self.user, self.item = Tower(users, extra=3), Tower(items)
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, s: Sample):
        return (self.user(s.user, s.dense) * self.item(s.item)).sum(-1) + self.bias


class Popularity(nn.Module):
    """Log-q correction. Counts are kept outside the state dict (they are huge in production)."""

    def __init__(self, items=7):
        super().__init__()
        self.counts = torch.ones(items)

    def observe(self, ids):
        self.counts += torch.bincount(ids.cpu(), minlength=len(self.counts))

    def forward(self, ids):
        p = self.counts / self.counts.sum()
        return p.log()[ids.cpu()].to(ids.device)


class PopularityFast(Popularity):
    def forward(self, ids):
        p = self.counts / self.counts.sum()
        return p.log()[ids]  # raises


class HistoryEncoder(nn.Module):
    def __init__(self, items=7, dim=4, max_len=6):
        super().__init__()
        self.items = nn.Embedding(items + 1, dim, padding_idx=0)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.max_len = max_len

    def init_state(self, batch):
        return torch.zeros(1, batch, self.gru.hidden_size)

    def forward(self, seqs, state=None):
        x = self.items(seqs)
        state = self.init_state(len(seqs)).to(x) if state is None else state
        out, state = self.gru(x, state)  # raises
        return out[:, -1], state


class SessionServer:
    """Keeps a hidden state per session between requests."""

    def __init__(self, net: HistoryEncoder, device: str):
        self.net = net.to(device).eval()
        self.device = device
        self.states: dict[str, Tensor] = {}

    def request(self, session, items):
        seq = torch.as_tensor([items], device=self.device)
        with torch.no_grad():
            vec, state = self.net(seq, self.states.get(session))
        self.states[session] = state
        return vec

    def migrate(self, device):
        self.net.to(device)
        self.device = device

    def migrate_all(self, device):
        self.migrate(device)
        self.states = {k: v.to(device) for k, v in self.states.items()}


class Index:
    """Brute force retrieval."""

    def __init__(self):
        self._vectors: list[Tensor] = []
        self._frozen: Tensor | None = None

    def add(self, v):
        self._vectors.append(v.detach())
        self._frozen = None

    @property
    def matrix(self):
        if self._frozen is None:
            self._frozen = torch.cat(self._vectors)
        return self._frozen

    def search(self, q, k=2):
        return (q @ self.matrix.t()).topk(k).indices  # raises


@lru_cache(maxsize=None)
def negative_pool(items: int, size: int) -> Tensor:
    return torch.randint(0, items, (size,), generator=torch.Generator().manual_seed(1))


@lru_cache(maxsize=None)
def candidate_ids(items: int, device: str) -> Tensor:
    return torch.arange(items, device=device)


@contextlib.contextmanager
def evaluating(model, device=None):
    was, home = model.training, next(model.parameters()).device
    model.eval()
    if device is not None:
        model.to(device)
    try:
        with torch.no_grad():
            yield model
    finally:
        model.train(was)
        model.to(home)


@contextlib.contextmanager
def on_host(model):
    model.cpu()
    model.eval()
    yield model
    model.train()


def fit(model, loader, device, epochs=1, hooks=()):
    model.to(device)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    loss_fn = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0, device=device))
    for _ in range(epochs):
        for batch in Prefetcher(loader, device):
            opt.zero_grad()
            loss = loss_fn(model(batch), batch.label)
            loss.backward()
            opt.step()
            for h in hooks:
                h(model, batch, loss.detach())
    return model


class EMA:
    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.shadow = {n: p.detach().clone() for n, p in model.named_parameters()}

    def __call__(self, model, batch, loss):
        for n, p in model.named_parameters():
            self.shadow[n].mul_(self.decay).add_(p.detach(), alpha=1 - self.decay)  # raises


class BestLoss:
    def __init__(self):
        self.best = torch.tensor(float("inf"))

    def __call__(self, model, batch, loss):
        if loss < self.best:
            self.best = loss


def in_batch_softmax(u, v, logq=None):
    scores = u @ v.t()
    if logq is not None:
        scores = scores - logq.unsqueeze(0)
    return nn.functional.cross_entropy(scores, torch.arange(len(u)).to(scores.device))


def in_batch_hits(u, v):
    scores = u @ v.t()
    diag = torch.arange(len(u))
    return (scores.argmax(1) == diag).float().mean()  # raises


def case_fit_and_track_best():
    loader = DataLoader(Clicks(), batch_size=4)
    tracker = BestLoss()
    fit(TwoTower(), loader, "cuda", hooks=[tracker])
    return tracker.best.item()


def case_ema_built_before_fit_moves():
    loader = DataLoader(Clicks(), batch_size=4)
    model = TwoTower()
    ema = EMA(model)
    return fit(model, loader, torch.device("cuda"), hooks=(ema,))


def case_ema_built_after_move():
    model = TwoTower().cuda()
    ema = EMA(model)
    fit(model, DataLoader(Clicks(), batch_size=6), "cuda", hooks=(BestLoss(), ema))
    clone = copy.deepcopy(model)
    clone.load_state_dict(ema.shadow)
    return clone


def case_logq_correction_host_counts():
    model = TwoTower().cuda()
    pop = Popularity().cuda()
    for s in Prefetcher(DataLoader(Clicks(), batch_size=6), "cuda"):
        pop.observe(s.item)
        loss = in_batch_softmax(model.user(s.user, s.dense), model.item(s.item), pop(s.item))
    return loss.item()


def case_logq_fast_path():
    model = TwoTower().cuda()
    pop = PopularityFast().cuda()
    losses = []
    for s in Prefetcher(DataLoader(Clicks(), batch_size=6), "cuda"):
        pop.observe(s.item)
        q = pop(s.item)
        losses.append(in_batch_softmax(model.user(s.user, s.dense), model.item(s.item), q))
    return losses


def case_in_batch_hit_rate():
    model = TwoTower()
    s = next(iter(DataLoader(Clicks(), batch_size=4)))
    before = in_batch_hits(model.user(s.user, s.dense), model.item(s.item))
    s = to_device(s, "cuda")
    model.to("cuda")
    after = in_batch_hits(model.user(s.user, s.dense), model.item(s.item))
    return before, after


def case_session_state_after_migration():
    server = SessionServer(HistoryEncoder(), "cuda:0")
    server.request("a", [1, 2, 3])
    server.migrate("cuda:1")
    server.request("b", [4])
    return server.request("a", [5])


def case_session_state_migrated_too():
    server = SessionServer(HistoryEncoder(), "cuda:0")
    for s in "ab":
        server.request(s, [1, 2])
    server.migrate_all("cuda:3")
    return [server.request(s, [3]).norm().item() for s in "abc"]


def case_index_over_offline_vectors():
    model = TwoTower()
    index = Index()
    with torch.no_grad():
        for chunk in torch.arange(7).split(3):
            index.add(model.item(chunk))
    model.cuda()
    s = to_device(next(iter(DataLoader(Clicks(), batch_size=2))), "cuda")
    q = model.user(s.user, s.dense)
    return index.search(q)


def case_negatives_from_cached_pool():
    model = TwoTower().cuda()
    pool = negative_pool(7, 20)
    picked = pool[torch.randint(0, len(pool), (4,))]
    vec = model.item(picked.to(model.bias.device))
    again = model.item.table.weight[negative_pool(7, 20)[:3]]
    return vec.mean().item() + again.mean().item()


def case_score_all_candidates_second_card():
    model = TwoTower().to("cuda:1")
    score = partial(candidate_ids, 7)
    ids = score("cuda")
    with evaluating(model):
        return model.item(ids)


def case_evaluate_on_host_and_return():
    model = TwoTower().cuda()
    s = next(iter(DataLoader(Clicks(), batch_size=4)))
    with evaluating(model, "cpu"):
        auc = model(s).sigmoid().numpy().mean()
    return auc, model(to_device(s, "cuda")).sum().item()


def case_host_evaluation_forgets_to_return():
    model = TwoTower().cuda()
    rows = next(iter(DataLoader(Clicks(), batch_size=4)))
    with on_host(model) as m, torch.no_grad():
        base = m(rows).mean().item()
    batch = to_device(rows, "cuda")
    users = model.bias + batch.dense.sum()
    vec = nn.functional.embedding(batch.user, model.user.table.weight)  # raises
    return base, users, vec
