"""A recommender: ratings in numpy, several models, a trainer and ranking metrics."""
import copy
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

MODELS: Dict[str, type] = {}


@dataclass
class Config:
    model: str = "mf"
    dim: int = 8
    batch_size: int = 16
    negatives: int = 2
    topk: int = 4
    lr: float = 0.05
    device: str = "cuda"


def model_of(name):
    def wrap(cls):
        MODELS[name] = cls
        return cls
    return wrap


def to_device(batch, device):
    if torch.is_tensor(batch):
        return batch.to(device)
    if isinstance(batch, dict):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple):
        return type(batch)(to_device(value, device) for value in batch)
    return batch


class Ratings:
    """Users, items and stars as numpy columns."""

    def __init__(self, users: int = 12, items: int = 20, count: int = 120, seed: int = 0):
        rng = np.random.default_rng(seed)
        self.n_users, self.n_items = users, items
        self.users = rng.integers(0, users, count)
        self.items = rng.integers(0, items, count)
        self.stars = rng.integers(1, 6, count).astype(np.float32)
        self.genres = (rng.random((items, 5)) < 0.4).astype(np.float32)

    @property
    def popularity(self) -> np.ndarray:
        return np.bincount(self.items, minlength=self.n_items).astype(np.float32) + 1

    def history(self) -> Dict[int, List[int]]:
        seen = defaultdict(list)
        for user, item in zip(self.users.tolist(), self.items.tolist()):
            seen[user].append(item)
        return seen

    def seen_matrix(self) -> np.ndarray:
        matrix = np.zeros((self.n_users, self.n_items), dtype=bool)
        matrix[self.users, self.items] = True
        return matrix


class RatingSet(Dataset):
    def __init__(self, ratings: Ratings):
        self.columns = (ratings.users, ratings.items, ratings.stars)

    def __len__(self):
        return len(self.columns[0])

    def __getitem__(self, index):
        user, item, stars = (column[index] for column in self.columns)
        return {"user": int(user), "item": int(item), "stars": stars}


def collate(rows: List[Dict[str, Any]]) -> Dict[str, Any]:
    batch = {key: torch.as_tensor(np.array([row[key] for row in rows])) for key in rows[0]}
    batch["weights"] = [1.0 + 0.1 * float(row["stars"]) for row in rows]
    return batch


def pad_histories(history: Dict[int, List[int]], users: Sequence[int], length: int = 6):
    rows = [history[user][-length:] for user in users]
    padded = torch.tensor([row + [0] * (length - len(row)) for row in rows])
    return padded, torch.tensor([len(row) for row in rows])


class Recommender(nn.Module):
    """Template: subclasses embed a pair, the base adds what users and items have in common."""

    def __init__(self, ratings: Ratings, config: Config):
        super().__init__()
        self.user, self.item = nn.Embedding(ratings.n_users, config.dim), nn.Embedding(ratings.n_items, config.dim)
        self.mean = torch.tensor(float(ratings.stars.mean()))
        self.build(ratings, config)

    def build(self, ratings: Ratings, config: Config) -> None:
        pass

    def interaction(self, user, item):
        return (self.user(user) * self.item(item)).sum(-1)

    def forward(self, user, item):
        return self.mean + self.interaction(user, item)

    def scores(self, user):
        return self.user(user) @ self.item.weight.t()


@model_of("mf")
class MatrixFactorization(Recommender):
    def build(self, ratings, config):
        deviation = np.log(ratings.popularity) - np.log(ratings.popularity).mean()
        self.register_buffer("item_bias", torch.from_numpy(deviation))

    def forward(self, user, item):
        return super().forward(user, item) + self.item_bias[item]


@model_of("content")
class ContentModel(Recommender):
    def build(self, ratings, config):
        self.genres = torch.from_numpy(ratings.genres)
        self.project = nn.Linear(ratings.genres.shape[1], config.dim)

    def interaction(self, user, item):
        content = self.project(self.genres[item])  # raises
        return (self.user(user) * (self.item(item) + content)).sum(-1)

    def cold_scores(self, user, names: Sequence[int]):
        content = self.project(self.genres[list(names)].to(user.device))
        return self.user(user) @ content.t()


@model_of("fm")
class FactorizationMachine(Recommender):
    def build(self, ratings, config):
        sizes = np.array([ratings.n_users, ratings.n_items])
        self.offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.table = nn.Embedding(int(sizes.sum()), config.dim)

    def fields(self, user, item):
        pair = torch.stack([user, item], dim=1)
        return pair + pair.new_tensor(self.offsets).unsqueeze(0)

    def interaction(self, user, item):
        embedded = self.table(self.fields(user, item))
        return 0.5 * (embedded.sum(1) ** 2 - (embedded ** 2).sum(1)).sum(-1)


@model_of("towers")
class TwoTower(Recommender):
    def build(self, ratings, config):
        self.towers = {side: nn.Sequential(nn.Linear(config.dim, config.dim), nn.ReLU()) for side in ("user", "item")}
        self.log_q = torch.log(torch.from_numpy(ratings.popularity / ratings.popularity.sum()))

    def interaction(self, user, item):
        left = self.towers["user"](self.user(user))  # raises
        return (left * self.towers["item"](self.item(item))).sum(-1)

    def in_batch(self, user, item):
        logits = self.user(user) @ self.item(item).t()
        logits = logits - self.log_q[item.cpu()]  # raises
        return F.cross_entropy(logits, torch.arange(len(item), device=logits.device))


@model_of("sequence")
class SequenceModel(Recommender):
    def build(self, ratings, config):
        self.positions = nn.Embedding(16, config.dim)
        self.rnn = nn.GRU(config.dim, config.dim, batch_first=True)

    def encode(self, padded, lengths):
        steps = torch.arange(padded.size(1)).expand_as(padded)
        hidden, _ = self.rnn(self.item(padded) + self.positions.weight[steps])
        return hidden[torch.arange(len(padded)), lengths.clamp(min=1) - 1]

    def attended(self, padded, lengths):
        embedded = self.item(padded)
        valid = torch.arange(padded.size(1)).unsqueeze(0) < lengths.cpu().unsqueeze(1)
        energy = embedded.sum(-1).masked_fill(~valid, -1e9)  # raises
        return (energy.softmax(-1).unsqueeze(-1) * embedded).sum(1)


class NegativeSampler:
    def __init__(self, ratings: Ratings, count: int):
        self.count = count
        self.weights = torch.from_numpy(ratings.popularity) ** 0.75
        self.seen = torch.from_numpy(ratings.seen_matrix())
        self.n_items = ratings.n_items

    def uniform(self, user):
        return torch.randint(self.n_items, (len(user), self.count)).to(user)

    def popular(self, user):
        return torch.multinomial(self.weights, len(user) * self.count, replacement=True).view(len(user), -1)

    def unseen(self, user):
        drawn = self.uniform(user)
        known = self.seen[user.unsqueeze(1), drawn]  # raises
        return torch.where(known, (drawn + 1) % self.n_items, drawn)


def bpr_loss(model: Recommender, user, item, negative):
    positive = model(user, item).unsqueeze(1)
    others = model.interaction(user.repeat_interleave(negative.size(1)), negative.view(-1))
    return -F.logsigmoid(positive - others.view(negative.shape)).mean()


def weighted_mse(predicted, batch: Dict[str, Any]):
    weights = torch.tensor(batch["weights"])
    return (weights * (predicted - batch["stars"]) ** 2).mean()  # raises


class RowAdagrad:
    def __init__(self, parameters, lr: float, lazy: bool):
        self.parameters, self.lr = list(parameters), lr
        self.state = {} if lazy else {p: torch.zeros(len(p), 1) for p in self.parameters}

    @torch.no_grad()
    def step(self):
        for p in self.parameters:
            if p.grad is None:
                continue
            squares = self.state.setdefault(p, torch.zeros(len(p), 1, device=p.device))
            squares += (p.grad ** 2).view(len(p), -1).mean(1, keepdim=True)  # raises
            p -= (self.lr * p.grad.view(len(p), -1) / (squares.sqrt() + 1e-8)).view_as(p)


class RankingEvaluator:
    def __init__(self, ratings: Ratings, k: int):
        self.k, self.seen = k, ratings.seen_matrix()
        self.discount = 1 / torch.log2(torch.arange(k) + 2.0)

    def hits(self, scores, users: np.ndarray):
        top = scores.topk(self.k, dim=-1).indices
        return torch.from_numpy(self.seen[users]).to(top.device).gather(1, top)

    def ndcg(self, scores, users) -> float:
        hits = self.hits(scores, users).float()
        return float((hits * self.discount).sum(-1).mean() / self.discount.sum())  # raises

    def recall(self, scores, users) -> float:
        return self.hits(scores, users).sum(-1).cpu().numpy().mean() / self.k

    def coverage(self, scores) -> float:
        top = scores.topk(self.k, dim=-1).indices
        return len(np.unique(top.detach().numpy())) / scores.size(1)  # raises


class KeepBest:
    def __init__(self):
        self.loss, self.state = math.inf, None

    def __call__(self, model: nn.Module, loss: float) -> None:
        if loss < self.loss:
            self.loss = loss
            self.state = {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}

    def restore(self, model: nn.Module) -> nn.Module:
        model.load_state_dict(self.state)
        return model

    def distance(self, model: nn.Module) -> float:
        gaps = [(value - self.state[name]).abs().max() for name, value in model.state_dict().items()]  # raises
        return max(float(gap) for gap in gaps)


class Trainer:
    def __init__(self, **overrides):
        self.config = Config(**overrides)
        self.ratings = Ratings()
        self.device = torch.device(self.config.device)
        self.model = MODELS[self.config.model](self.ratings, self.config).to(self.device)
        self.sampler = NegativeSampler(self.ratings, self.config.negatives)
        self.evaluator = RankingEvaluator(self.ratings, self.config.topk)
        self.losses: List[torch.Tensor] = []

    def loader(self) -> DataLoader:
        return DataLoader(RatingSet(self.ratings), batch_size=self.config.batch_size, collate_fn=collate)

    def batches(self, limit: int = 2):
        for number, batch in enumerate(self.loader()):
            if number == limit:
                return
            yield to_device(batch, self.device)

    def loss(self, batch):
        return F.mse_loss(self.model(batch["user"], batch["item"]), batch["stars"])

    def fit(self, optimizer: Optional[Any] = None, callback=None) -> "Trainer":
        optimizer = optimizer or torch.optim.Adam(self.model.parameters(), lr=self.config.lr)
        for batch in self.batches():
            self.model.zero_grad()
            loss = self.loss(batch)
            loss.backward()
            optimizer.step()
            self.losses.append(loss.detach())
            if callback is not None:
                callback(self.model, loss.item())
        return self

    def summary(self) -> Tuple[float, float]:
        return float(sum(self.losses) / len(self.losses)), np.median(self.losses)  # raises

    def full_scores(self):
        users = np.arange(self.ratings.n_users)
        return self.model.scores(torch.as_tensor(users, device=self.device)), users


def case_mf():
    return float(Trainer().fit().losses[-1].cpu().numpy())


def case_summary():
    return Trainer().fit().summary()


def case_content():
    return Trainer(model="content").fit()


def case_content_cold():
    trainer = Trainer(model="content")
    return trainer.model.cold_scores(torch.arange(3).to(trainer.device), range(4))


def case_factorization():
    return Trainer(model="fm").fit(callback=KeepBest())


def case_towers():
    return Trainer(model="towers").fit()


def case_in_batch():
    trainer = Trainer(model="towers")
    batch = next(trainer.batches())
    return trainer.model.in_batch(batch["user"], batch["item"])


def sequences(trainer):
    return to_device(pad_histories(trainer.ratings.history(), range(5)), trainer.device)


def case_sequence():
    trainer = Trainer(model="sequence")
    return trainer.model.encode(*sequences(trainer))


def case_sequence_attended():
    trainer = Trainer(model="sequence")
    return trainer.model.attended(*sequences(trainer))


def ranked(sample: str):
    trainer = Trainer()
    for batch in trainer.batches(limit=1):
        negative = getattr(trainer.sampler, sample)(batch["user"]).to(trainer.device)
        bpr_loss(trainer.model, batch["user"], batch["item"], negative).backward()


def case_bpr_popular():
    ranked("popular")


def case_bpr_unseen():
    ranked("unseen")


def case_weighted():
    trainer = Trainer()
    batch = next(trainer.batches())
    return weighted_mse(trainer.model(batch["user"], batch["item"]), batch)


def case_adagrad():
    trainer = Trainer()
    trainer.fit(RowAdagrad(trainer.model.parameters(), 0.1, lazy=False))


def case_adagrad_lazy():
    trainer = Trainer(model="fm")
    trainer.fit(RowAdagrad(trainer.model.parameters(), 0.1, lazy=True))


def case_ndcg():
    trainer = Trainer()
    return trainer.evaluator.ndcg(*trainer.full_scores())


def case_recall():
    trainer = Trainer()
    return trainer.evaluator.recall(*trainer.full_scores())


def case_coverage():
    trainer = Trainer()
    return trainer.evaluator.coverage(trainer.full_scores()[0])


def case_keep_best():
    best, trainer = KeepBest(), Trainer()
    trainer.fit(callback=best)
    return best.restore(copy.deepcopy(trainer.model)).scores(torch.tensor([0, 1], device="cuda"))


def case_keep_best_distance():
    best, trainer = KeepBest(), Trainer()
    trainer.fit(callback=best)
    return best.distance(trainer.model)
