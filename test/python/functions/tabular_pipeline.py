"""Tabular learning: feature specs, scalers, collate functions, loaders, sklearn style estimators."""
from __future__ import annotations

import abc
import collections
import dataclasses
import functools
import io
import itertools
import typing as t

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, TensorDataset

Batch = t.Dict[str, torch.Tensor]


def pick_device(prefer: t.Optional[str] = None) -> torch.device:
    if prefer is not None:
        return torch.device(prefer)
    return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")


def move(obj, device):
    if torch.is_tensor(obj):
        return obj.to(device, non_blocking=True)
    if isinstance(obj, dict):
        return {k: move(v, device) for k, v in obj.items()}
    if isinstance(obj, tuple) and hasattr(obj, "_fields"):
        return type(obj)(*(move(v, device) for v in obj))
    if isinstance(obj, (list, tuple)):
        return type(obj)(move(v, device) for v in obj)
    return obj


def frame(n=12, seed=0) -> t.Dict[str, np.ndarray]:
    rng = np.random.RandomState(seed)
    return {
        "age": rng.randint(18, 80, n).astype(np.float32),
        "income": rng.lognormal(10, 1, n).astype(np.float32),
        "city": rng.randint(0, 4, n),
        "plan": rng.randint(0, 3, n),
        "y": rng.randint(0, 2, n),
    }


@dataclasses.dataclass(frozen=True)
class Column:
    name: str
    kind: str = "num"
    cardinality: int = 0


SCHEMA = [Column("age"), Column("income"), Column("city", "cat", 4), Column("plan", "cat", 3)]


class FrameDataset(Dataset):
    def __init__(self, data, schema=SCHEMA, target="y"):
        self.num = torch.tensor(np.stack([data[c.name] for c in schema if c.kind == "num"], 1))
        self.cat = torch.tensor(np.stack([data[c.name] for c in schema if c.kind == "cat"], 1)).long()
        self.y = torch.as_tensor(data[target]).long()

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"num": self.num[i], "cat": self.cat[i], "y": self.y[i]}


class Scaler:
    def __init__(self):
        self.mean_ = self.std_ = None

    def fit(self, x):
        self.mean_, self.std_ = x.mean(0), x.std(0).clamp_min(1e-6)
        return self

    def transform(self, x):
        return (x - self.mean_) / self.std_  # raises

    def fit_transform(self, x):
        return self.fit(x).transform(x)

    def inverse(self, z):
        return z * self.std_.to(z) + self.mean_.to(z)

    def state_dict(self):
        return {"mean": self.mean_, "std": self.std_}

    @classmethod
    def from_state(cls, state, map_location=None):
        self = cls()
        self.mean_, self.std_ = state["mean"], state["std"]
        if map_location is not None:
            self.mean_, self.std_ = self.mean_.to(map_location), self.std_.to(map_location)
        return self


class QuantileScaler(Scaler):
    def __init__(self, bins=4):
        super().__init__()
        self.q = torch.linspace(0, 1, bins + 1)[1:-1]

    def fit(self, x):
        self.edges_ = torch.quantile(x.cpu(), self.q, dim=0).T.contiguous()
        return self

    def transform(self, x):
        edges = self.edges_ if not x.is_cuda else self.edges_.to(x.device)
        return torch.searchsorted(edges, x.T.contiguous()).T.float()


class CategoryEmbedding(nn.Module):
    """One table for all columns, addressed by offsets."""

    def __init__(self, cards: t.Sequence[int], dim: int, persistent_offsets=True):
        super().__init__()
        offsets = torch.tensor(list(itertools.accumulate([0] + list(cards)[:-1])))
        if persistent_offsets:
            self.register_buffer("offsets", offsets)
        else:
            self.offsets = offsets
        self.table = nn.Embedding(sum(cards), dim)

    def forward(self, cat):
        return self.table(cat + self.offsets)  # raises


class FeatureTokenizer(nn.Module):
    def __init__(self, schema, dim, **kw):
        super().__init__()
        n_num = sum(c.kind == "num" for c in schema)
        self.weight = nn.Parameter(torch.randn(n_num, dim) * 0.1)
        self.bias = nn.Parameter(torch.zeros(n_num, dim))
        self.cats = CategoryEmbedding([c.cardinality for c in schema if c.kind == "cat"], dim, **kw)

    def forward(self, batch: Batch):
        num = batch["num"][..., None] * self.weight + self.bias
        return torch.cat([num, self.cats(batch["cat"])], dim=1)


class TabNet(nn.Module):
    def __init__(self, schema=SCHEMA, dim=4, out=2, **kw):
        super().__init__()
        self.tokens = FeatureTokenizer(schema, dim, **kw)
        self.mix = nn.TransformerEncoderLayer(dim, 2, 8, dropout=0.0, batch_first=True)
        self.head = nn.Linear(dim, out)

    def forward(self, batch):
        return self.head(self.mix(self.tokens(batch)).mean(1))


def batches(ds, device=None, **kw):
    for batch in DataLoader(ds, batch_size=4, **kw):
        yield batch if device is None else move(batch, device)


# ---------------------------------------------------------------------------------------------------------------

class BaseEstimator(abc.ABC):
    def __init__(self, lr=1e-2, epochs=1, device=None, class_weight=None):
        self.lr, self.epochs, self.device, self.class_weight = lr, epochs, pick_device(device), class_weight

    @abc.abstractmethod
    def build(self, ds) -> nn.Module:
        ...

    def _weights(self, y):
        if self.class_weight is None:
            return None
        if self.class_weight == "balanced":
            counts = torch.bincount(y, minlength=2).float()
            return counts.sum() / (2 * counts.clamp(min=1))
        return torch.tensor([self.class_weight[k] for k in sorted(self.class_weight)], device=self.device)

    def fit(self, ds):
        self.module_ = self.build(ds).to(self.device)
        weight = self._weights(ds.y)
        opt = torch.optim.Adam(self.module_.parameters(), lr=self.lr)
        self.history_ = []
        for _ in range(self.epochs):
            for batch in batches(ds, self.device):
                opt.zero_grad()
                loss = F.cross_entropy(self.module_(batch), batch["y"], weight=weight)  # raises
                loss.backward()
                opt.step()
                self.history_.append(loss.detach())
        return self

    @torch.no_grad()
    def predict_proba(self, ds):
        self.module_.eval()
        return torch.cat([self.module_(b).softmax(-1).cpu() for b in batches(ds, self.device)]).numpy()


class TabNetClassifier(BaseEstimator):
    def build(self, ds):
        self.scaler_ = Scaler()
        ds.num = self.scaler_.fit_transform(ds.num)
        return TabNet()


def case_balanced_class_weights():
    clf = TabNetClassifier(class_weight="balanced").fit(FrameDataset(frame()))
    return clf.predict_proba(FrameDataset(frame(5, 1))).sum()


def case_explicit_class_weights():
    ds = FrameDataset(frame())
    clf = TabNetClassifier(class_weight={0: 1.0, 1: 3.0}, epochs=2).fit(ds)
    return clf.predict_proba(ds).argmax(1), torch.stack(clf.history_).mean().item()


def case_offsets_without_buffer():
    device = pick_device()
    net = TabNet(persistent_offsets=False).to(device)
    correct = 0
    for batch in batches(FrameDataset(frame()), device):
        correct += (net(batch).argmax(1) == batch["y"]).sum().item()
    return correct


def case_scaler_fit_on_train_applied_in_loop():
    device = pick_device()
    train, valid = FrameDataset(frame()), FrameDataset(frame(8, seed=3))
    scaler = Scaler().fit(train.num)
    net = TabNet().to(device).eval()
    logits = []
    for batch in batches(valid, device):
        batch["num"] = scaler.transform(batch["num"])
        logits.append(net(batch))
    return torch.cat(logits).shape


def case_scaler_from_checkpoint():
    device = pick_device()
    train = FrameDataset(frame())
    buf = io.BytesIO()
    torch.save(Scaler().fit(train.num).state_dict(), buf)
    buf.seek(0)
    scaler = Scaler.from_state(torch.load(buf), map_location=device)
    z = scaler.transform(train.num.to(device))
    back = scaler.inverse(z.cpu())
    assert torch.allclose(back, train.num, rtol=1e-3)
    return z.std().item()


def case_quantile_scaler_both_sides():
    device = pick_device()
    ds = FrameDataset(frame())
    scaler = QuantileScaler().fit(ds.num.to(device))
    on_gpu = scaler.transform(ds.num.to(device))
    on_cpu = scaler.transform(ds.num)
    return (on_gpu.cpu() - on_cpu).abs().max().item()


# ---------------------------------------------------------------------------------------------------------------

Sample = collections.namedtuple("Sample", "values lengths label")


class RaggedDataset(Dataset):
    def __init__(self, n=6, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.rows = [torch.randn(int(k), 3, generator=g) for k in torch.randint(1, 5, (n,), generator=g)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i], i % 2


def collate_ragged(samples) -> Sample:
    rows, labels = zip(*samples)
    lengths = torch.tensor([len(r) for r in rows])
    return Sample(nn.utils.rnn.pad_sequence(rows, batch_first=True), lengths, torch.tensor(labels))


class EventEncoder(nn.Module):
    def __init__(self, dim=4, pooling="packed"):
        super().__init__()
        self.gru = nn.GRU(3, dim, batch_first=True)
        self.out = nn.Linear(dim, 2)
        self.pooling = pooling

    def forward(self, sample: Sample):
        if self.pooling == "packed":
            packed = nn.utils.rnn.pack_padded_sequence(sample.values, sample.lengths, True, enforce_sorted=False)  # raises
            _, h = self.gru(packed)
            return self.out(h[-1])
        y, _ = self.gru(sample.values)
        mask = torch.arange(y.shape[1], device=y.device) < sample.lengths[:, None]
        return self.out((y * mask[..., None]).sum(1) / sample.lengths[:, None])


def run_events(pooling, device):
    net = EventEncoder(pooling=pooling).to(device)
    loader = DataLoader(RaggedDataset(), batch_size=3, collate_fn=collate_ragged)
    losses = []
    for sample in loader:
        sample = move(sample, device)
        losses.append(F.cross_entropy(net(sample), sample.label))
    return sum(losses).item()


def case_events_packed():
    return run_events("packed", pick_device())


def case_events_masked_mean():
    return run_events("mean", pick_device())


class Prefetcher:
    """Keeps one batch ahead on the device."""

    def __init__(self, loader, device, transform: t.Optional[t.Callable[[Batch], Batch]] = None):
        self.loader, self.device, self.transform = loader, device, transform
        self._next: t.Optional[Batch] = None

    def __iter__(self):
        it = iter(self.loader)
        self._load(it)
        while self._next is not None:
            batch = self._next
            self._load(it)
            yield batch

    def _load(self, it):
        try:
            batch = next(it)
        except StopIteration:
            self._next = None
            return
        batch = move(batch, self.device)
        self._next = self.transform(batch) if self.transform else batch


def mixup(batch: Batch, alpha=0.4, classes=2) -> Batch:
    n = len(batch["y"])
    lam = torch.distributions.Beta(alpha, alpha).sample((n, 1))
    perm = torch.randperm(n)
    onehot = F.one_hot(batch["y"], classes).float()
    out = dict(batch)
    out["num"] = lam * batch["num"] + (1 - lam) * batch["num"][perm]  # raises
    out["y"] = lam * onehot + (1 - lam) * onehot[perm]
    return out


def swap_noise(batch: Batch, p=0.2) -> Batch:
    num = batch["num"]
    donor = num[torch.randint(len(num), (len(num),))]
    mask = torch.rand_like(num) < p
    return {**batch, "num": torch.where(mask, donor, num)}


def case_prefetch_with_mixup():
    device = pick_device()
    net = TabNet().to(device)
    total = 0.0
    for batch in Prefetcher(DataLoader(FrameDataset(frame()), batch_size=4), device, functools.partial(mixup, alpha=0.2)):
        total += -(batch["y"] * net(batch).log_softmax(-1)).sum(-1).mean().item()
    return total


def case_prefetch_with_swap_noise():
    device = pick_device()
    net = TabNet().to(device)
    shapes = [net(b).shape for b in Prefetcher(DataLoader(FrameDataset(frame()), batch_size=4), device, swap_noise)]
    return len(shapes)


class ReplayStream(IterableDataset):
    """Keeps a reservoir of the hardest rows seen so far."""

    def __init__(self, size=4):
        self.size = size
        self.rows: t.List[Batch] = []
        self.scores: t.List[float] = []

    def offer(self, batch, losses):
        for i, loss in enumerate(losses.tolist()):
            self.rows.append({k: v[i] for k, v in batch.items()})
            self.scores.append(loss)
        best = np.argsort(self.scores)[::-1][: self.size]
        self.rows = [self.rows[i] for i in best]
        self.scores = [self.scores[i] for i in best]

    def __iter__(self):
        yield from self.rows


def case_hard_example_replay():
    device = pick_device()
    net, replay = TabNet().to(device), ReplayStream()
    for batch in batches(FrameDataset(frame(8)), device):
        with torch.no_grad():
            replay.offer(batch, F.cross_entropy(net(batch), batch["y"], reduction="none"))
    out = [F.cross_entropy(net(b), b["y"]) for b in batches(replay)]
    return torch.stack(out).mean().item()


def permutation_importance(net, ds, device, rounds=2):
    names = [c.name for c in SCHEMA if c.kind == "num"]
    everything = move({"num": ds.num, "cat": ds.cat}, device)
    base = (net(everything).argmax(1).cpu() == ds.y).float().mean()
    importance = {}
    for j, name in enumerate(names):
        drops = []
        for _ in range(rounds):
            shuffled = everything["num"].clone()
            shuffled[:, j] = ds.num[torch.randperm(len(ds)), j]
            hit = net({**everything, "num": shuffled}).argmax(1) == ds.y  # raises
            drops.append(base - hit.float().mean())
        importance[name] = torch.stack(drops).mean().item()
    return importance


def case_permutation_importance():
    device = pick_device()
    net = TabNet().to(device).eval()
    with torch.no_grad():
        return permutation_importance(net, FrameDataset(frame()), device)
