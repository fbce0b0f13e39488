"""A molecule property predictor whose layers are spread over two GPUs."""
import copy
import io
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

ELEMENTS = {"H": 0, "C": 1, "N": 2, "O": 3}
MASSES = np.array([1.008, 12.011, 14.007, 15.999], dtype=np.float32)


@dataclass
class Plan:
    """Which layer goes where."""
    dim: int = 8
    layers: int = 4
    devices: Tuple[str, ...] = ("cuda:0", "cuda:1")
    jump: str = "last"
    pool: str = "sum"
    virtual_node: bool = False
    residual: bool = False
    uncertainty: bool = False

    def device_of(self, layer: int) -> torch.device:
        return torch.device(self.devices[layer * len(self.devices) // self.layers])

    @property
    def first(self) -> torch.device:
        return self.device_of(0)

    @property
    def last(self) -> torch.device:
        return self.device_of(self.layers - 1)


@dataclass
class Molecule:
    symbols: Sequence[str]
    positions: np.ndarray
    bonds: List[Tuple[int, int]]
    targets: np.ndarray


def make_molecules(count: int = 6, seed: int = 0) -> List[Molecule]:
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        size = int(rng.integers(3, 7))
        symbols = rng.choice(list(ELEMENTS), size).tolist()
        bonds = [(i, i + 1) for i in range(size - 1)] + [(i + 1, i) for i in range(size - 1)]
        out.append(Molecule(symbols, rng.normal(size=(size, 3)).astype(np.float32), bonds, rng.normal(size=2).astype(np.float32)))
    return out


@dataclass
class Batch:
    atoms: torch.Tensor
    positions: torch.Tensor
    edges: torch.Tensor
    owner: torch.Tensor
    targets: torch.Tensor
    sizes: List[int]

    @classmethod
    def collate(cls, molecules: Sequence[Molecule]) -> "Batch":
        sizes = [len(molecule.symbols) for molecule in molecules]
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        edges = np.concatenate([np.array(m.bonds).T + start for m, start in zip(molecules, starts)], axis=1)
        return cls(
            atoms=torch.tensor([ELEMENTS[s] for m in molecules for s in m.symbols]),
            positions=torch.from_numpy(np.concatenate([m.positions for m in molecules])),
            edges=torch.from_numpy(edges),
            owner=torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes)),
            targets=torch.from_numpy(np.stack([m.targets for m in molecules])),
            sizes=sizes,
        )

    def to(self, device) -> "Batch":
        return Batch(**{name: value.to(device) if torch.is_tensor(value) else value for name, value in vars(self).items()})


def pool_nodes(x, owner, graphs: int, how: str):
    out = torch.zeros(graphs, x.size(1), device=x.device)
    out = out.index_add(0, owner, x)  # raises
    if how == "mean":
        out = out / torch.bincount(owner, minlength=graphs).clamp(min=1).unsqueeze(1)
    return out


def split_pool(x, sizes: Sequence[int]):
    return torch.stack([part.sum(0) for part in x.split(list(sizes))])


class Smearing(nn.Module):
    def __init__(self, bumps: int):
        super().__init__()
        self.register_buffer("centres", torch.linspace(0, 4, bumps))
        self.width = torch.tensor(4.0 / bumps)

    def forward(self, distance):
        return torch.exp(-((distance.unsqueeze(-1) - self.centres) / self.width) ** 2)


class Interaction(nn.Module):
    """A continuous-filter layer."""

    def __init__(self, dim: int):
        super().__init__()
        self.smear, self.filter = Smearing(dim), nn.Linear(dim, dim)
        self.update = nn.Linear(dim, dim)

    @property
    def device(self) -> torch.device:
        return self.update.weight.device

    def forward(self, x, edges, distance):
        x, (source, target) = x.to(self.device), edges.to(self.device)
        weight = self.filter(self.smear(distance.to(self.device)))
        messages = torch.zeros_like(x).index_add(0, target, x[source] * weight)
        return torch.tanh(self.update(messages))


class Network(nn.Module):
    def __init__(self, plan: Plan, tasks: int = 2):
        super().__init__()
        self.plan = plan
        self.embed = nn.Embedding(len(ELEMENTS), plan.dim).to(plan.first)
        self.layers = nn.ModuleList(Interaction(plan.dim).to(plan.device_of(i)) for i in range(plan.layers))
        width = plan.dim * (plan.layers if plan.jump == "cat" else 1)
        self.head = nn.Sequential(nn.Linear(width, plan.dim), nn.SiLU(), nn.Linear(plan.dim, tasks)).to(plan.last)
        if plan.virtual_node:
            self.virtual = nn.Parameter(torch.zeros(1, plan.dim, device=plan.first))
        if plan.uncertainty:
            self.log_vars = nn.Parameter(torch.zeros(tasks, device=plan.first))
        self.taps: List[Callable] = []

    def distances(self, batch: Batch):
        source, target = batch.edges
        return (batch.positions[source] - batch.positions[target]).norm(dim=-1)

    def gather(self, outputs: List[torch.Tensor]):
        if self.plan.jump == "cat":
            return torch.cat(outputs, dim=-1)  # raises
        if self.plan.jump == "sum":
            return sum(each.to(self.plan.last) for each in outputs)
        return outputs[-1]

    def nodes(self, batch: Batch):
        x, distance, outputs = self.embed(batch.atoms), self.distances(batch), []
        for layer in self.layers:
            new = layer(x, batch.edges, distance)
            if self.plan.residual:
                new = new + x  # raises
            if self.plan.virtual_node:
                new = new + self.virtual.to(new.device)
            x = new
            outputs.append(x)
        return self.gather(outputs)

    def forward(self, batch: Batch):
        x = self.nodes(batch)
        for tap in self.taps:
            x = tap(x, batch)
        if self.plan.pool == "split":
            return self.head(split_pool(x, batch.sizes))
        owner = batch.owner if self.plan.pool == "raw" else batch.owner.to(x.device)
        return self.head(pool_nodes(x, owner, len(batch.sizes), self.plan.pool))


def mass_tap(x, batch: Batch):
    masses = torch.from_numpy(MASSES)[batch.atoms.cpu()]
    return x * masses.unsqueeze(-1).to(x)


def charge_tap(x, batch: Batch):
    charges = torch.tensor([1.0, 4.0, 5.0, 6.0], device="cuda")[batch.atoms]
    return x * charges.unsqueeze(-1)  # raises


def centre_tap(x, batch: Batch):
    return x - x[batch.owner == 0].mean(0)  # raises


class TargetScaler:
    def __init__(self, batches: Iterable[Batch]):
        targets = torch.cat([batch.targets for batch in batches])
        self.mean, self.std = targets.mean(0), targets.std(0)

    def scale(self, targets):
        return (targets - self.mean.to(targets)) / self.std.to(targets)

    def restore(self, predicted):
        return predicted * self.std + self.mean  # raises

    def error(self, predicted, targets) -> List[float]:
        gap = self.restore(predicted.detach().to(self.mean.device)) - targets.to(self.mean.device)
        return gap.abs().mean(0).tolist()


class Shadow:
    """Averages of the parameters."""

    def __init__(self, model: nn.Module, decay: float = 0.9, device=None):
        self.decay = decay
        self.values = {name: p.detach().clone().to(device or p.device) for name, p in model.named_parameters()}

    def update(self, model: nn.Module) -> None:
        for name, p in model.named_parameters():
            self.values[name].mul_(self.decay).add_(p.detach(), alpha=1 - self.decay)  # raises

    @contextmanager
    def swapped(self, model: nn.Module):
        backup = copy.deepcopy(model.state_dict())
        model.load_state_dict({**backup, **self.values})
        yield model
        model.load_state_dict(backup)


def clip_global(model: nn.Module, limit: float = 1.0, gathered: bool = True) -> float:
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    if gathered:
        norm = torch.stack([g.norm().to(grads[0].device) for g in grads]).norm()
    else:
        norm = sum(g.pow(2).sum() for g in grads).sqrt()  # raises
    for g in grads:
        g.mul_(float(limit / (norm + 1e-6)) if norm > limit else 1.0)
    return float(norm)


class LayerwiseMomentum:
    def __init__(self, model: nn.Module, lr: float = 0.05):
        self.named, self.lr, self.step_count = dict(model.named_parameters()), lr, torch.tensor(0.0)
        self.buffers: Dict[str, torch.Tensor] = {}

    @torch.no_grad()
    def step(self) -> None:
        self.step_count += 1
        for name, p in self.named.items():
            if p.grad is not None:
                old = self.buffers.get(name, torch.zeros_like(p))
                self.buffers[name] = 0.9 * old + p.grad  # raises
                p.sub_(self.lr / self.step_count.sqrt() * self.buffers[name])

    def save(self) -> io.BytesIO:
        stream = io.BytesIO()
        torch.save({"buffers": self.buffers, "count": self.step_count}, stream)
        stream.seek(0)
        return stream

    def load(self, stream: io.BytesIO, map_location: Optional[str] = None) -> None:
        state = torch.load(stream, map_location=map_location)
        self.buffers, self.step_count = state["buffers"], state["count"]


class Trainer:
    def __init__(self, **overrides):
        self.plan = Plan(**overrides)
        self.model = Network(self.plan)
        self.batches = [Batch.collate(make_molecules(seed=seed)) for seed in range(2)]
        self.scaler = TargetScaler(self.batches)
        self.optimizer: Any = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.after: List[Callable[[nn.Module], Any]] = []

    def loss(self, predicted, batch: Batch):
        error = (predicted - self.scaler.scale(batch.targets.to(predicted.device))) ** 2
        if self.plan.uncertainty:
            error = error * torch.exp(-self.model.log_vars) + self.model.log_vars  # raises
        return error.mean()

    def fit(self, epochs: int = 1) -> List[float]:
        history = []
        for _ in range(epochs):
            for batch in self.batches:
                batch = batch.to(self.plan.first)
                loss = self.loss(self.model(batch), batch)
                self.model.zero_grad()
                loss.backward()
                self.optimizer.step()
                for callback in self.after:
                    callback(self.model)
                history.append(loss.item())
        return history

    def predict(self) -> List[torch.Tensor]:
        with torch.no_grad():
            return [self.model(batch.to(self.plan.first)) for batch in self.batches]

    def by_task(self) -> List[float]:
        totals = torch.zeros(2)
        for predicted, batch in zip(self.predict(), self.batches):
            totals += (predicted - batch.targets.to(self.plan.last)).abs().mean(0).to(totals.device)
        return totals.tolist()

    def correlation(self) -> float:
        predicted = torch.cat(self.predict()).flatten()
        targets = torch.cat([batch.targets.to(self.plan.first) for batch in self.batches]).flatten()
        return float(torch.corrcoef(torch.stack([predicted, targets]))[0, 1])  # raises


def case_fit():
    return Trainer(residual=False, pool="mean").fit(2)


def case_fit_one_gpu():
    return Trainer(devices=("cuda:1",), jump="cat", residual=True, pool="raw", uncertainty=True).fit()


def case_pool_raw():
    return Trainer(pool="raw").fit()


def case_pool_split():
    return Trainer(pool="split").fit()


def case_jump_cat():
    return Trainer(jump="cat").fit()


def case_jump_sum():
    return Trainer(jump="sum", virtual_node=True).fit()


def case_residual():
    return Trainer(residual=True).fit()


def tapped(tap: Callable) -> Trainer:
    trainer = Trainer()
    trainer.model.taps.append(tap)
    trainer.fit()
    return trainer


def case_tap_mass():
    return tapped(mass_tap).by_task()


def case_tap_charge():
    return tapped(charge_tap)


def case_tap_centre():
    return tapped(centre_tap)


def case_uncertainty():
    return Trainer(uncertainty=True).fit()


def case_scaler_error():
    trainer = Trainer()
    return [trainer.scaler.error(p, batch.targets) for p, batch in zip(trainer.predict(), trainer.batches)]


def case_scaler_restore():
    trainer = Trainer()
    return [trainer.scaler.restore(predicted) for predicted in trainer.predict()]


def with_shadow(device=None) -> List[torch.Tensor]:
    trainer = Trainer()
    shadow = Shadow(trainer.model, device=device)
    trainer.after.append(shadow.update)
    trainer.fit()
    with shadow.swapped(trainer.model):
        return trainer.predict()


def case_shadow():
    return with_shadow()


def case_shadow_one_device():
    return with_shadow("cuda:0")


def case_clip():
    trainer = Trainer()
    trainer.after.append(clip_global)
    return trainer.fit()


def case_clip_running():
    trainer = Trainer()
    trainer.after.append(lambda model: clip_global(model, gathered=False))
    return trainer.fit()


def resumed(map_location: Optional[str]) -> List[float]:
    trainer = Trainer()
    trainer.optimizer = LayerwiseMomentum(trainer.model)
    trainer.fit()
    trainer.optimizer.load(trainer.optimizer.save(), map_location)
    return trainer.fit()


def case_resume():
    return resumed(None)


def case_resume_mapped():
    return resumed("cuda:0")


def case_correlation():
    return Trainer().correlation()
