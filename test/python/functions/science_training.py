"""Training of surrogates for a field: problem, networks, trainer, callbacks, statistics and several GPUs."""
import copy
import io
import math
from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class TrainConfig:
    device: str = "cuda:0"
    width: int = 8
    steps: int = 3
    batch: int = 4
    lr: float = 1e-2
    scale: float = 8.0
    patience: int = 2


class FieldData(Dataset):
    def __init__(self, n: int = 12, seed: int = 0):
        rng = np.random.default_rng(seed)
        self.points = rng.uniform(-1, 1, (n, 2)).astype(np.float32)
        self.values = np.sin(self.points.sum(1, keepdims=True)).astype(np.float32)

    def __len__(self):
        return len(self.points)

    def __getitem__(self, k):
        return {"x": self.points[k], "y": self.values[k], "id": k}


def to_device(batch: Dict[str, Any], device, keep: Sequence[str] = ("id",)) -> Dict[str, Any]:
    return {key: value if key in keep else value.to(device) for key, value in batch.items()}


class Standardiser:
    """Zero mean and unit variance of the targets."""

    def __init__(self, data: FieldData):
        values = torch.from_numpy(data.values)
        self.mean, self.std = values.mean(0), values.std(0)

    def to(self, device) -> "Standardiser":
        self.mean, self.std = self.mean.to(device), self.std.to(device)
        return self

    def state(self) -> Dict[str, torch.Tensor]:
        return {"mean": self.mean.cpu(), "std": self.std.cpu()}

    def load(self, state: Dict[str, torch.Tensor]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def forward(self, y: torch.Tensor) -> torch.Tensor:
        return (y - self.mean.item()) / self.std.item()

    def inverse(self, z: torch.Tensor) -> torch.Tensor:
        return torch.addcmul(self.mean, z, self.std)  # raises


class FourierNet(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.register_buffer("frequencies", torch.randn(2, width // 2))
        self.body = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def features(self, x: torch.Tensor) -> torch.Tensor:
        phase = 2 * math.pi * x @ self.frequencies
        return torch.cat([phase.sin(), phase.cos()], -1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(self.features(x))


class LossScaler:
    """A scale of the loss that halves when a gradient overflows."""

    def __init__(self, scale: float, shape: Tuple[int, ...] = ()):
        self.scale = torch.full(shape, scale)
        self.good = 0

    def enlarge(self, loss: torch.Tensor) -> torch.Tensor:
        return loss * self.scale  # raises

    def unscale(self, parameters: Iterable[nn.Parameter]) -> bool:
        flags: Dict[torch.device, torch.Tensor] = {}
        for p in parameters:
            if p.grad is None:
                continue
            p.grad.div_(self.scale)
            bad = (~torch.isfinite(p.grad)).any()
            flags[p.grad.device] = flags[p.grad.device] | bad if p.grad.device in flags else bad
        return any(bool(each) for each in flags.values())

    def update(self, overflow: bool) -> None:
        self.good = 0 if overflow else self.good + 1
        self.scale = self.scale * (0.5 if overflow else 1.0)


class TableSchedule:
    """Learning rates from a table."""

    def __init__(self, base: float, total: int, device: str):
        self.table = base * 0.5 * (1 + torch.cos(torch.linspace(0, math.pi, total)))
        self.count = torch.zeros((), dtype=torch.long, device=device)

    def rate(self) -> float:
        value = self.table[min(self.count, len(self.table) - 1)].item()
        self.count += 1
        return value

    def ahead(self, steps: int) -> torch.Tensor:
        wanted = self.count + torch.arange(steps, device=self.count.device)
        return self.table.index_select(0, wanted.clamp(max=len(self.table) - 1))  # raises


class HandAdam:
    def __init__(self, parameters: Iterable[nn.Parameter], schedule: Callable[[], float], betas=(0.9, 0.99)):
        self.parameters, self.schedule, self.betas = list(parameters), schedule, betas
        self.state: Dict[int, Dict[str, Any]] = defaultdict(dict)

    def state_dict(self) -> Dict[int, Dict[str, Any]]:
        return dict(self.state)

    def load_state_dict(self, state: Dict[int, Dict[str, Any]], match: bool = True) -> None:
        for k, slots in state.items():
            target = self.parameters[k].device
            self.state[k] = {n: v.to(target) if match and torch.is_tensor(v) else v for n, v in slots.items()}

    @torch.no_grad()
    def step(self) -> None:
        lr, (b1, b2) = self.schedule(), self.betas
        for k, p in enumerate(self.parameters):
            slots = self.state[k]
            if not slots:
                slots.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
            slots["t"] += 1
            slots["m"].lerp_(p.grad, 1 - b1)  # raises
            slots["v"].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            p.addcdiv_(slots["m"] / (1 - b1 ** slots["t"]), slots["v"].sqrt() + 1e-8, value=-lr)


class Callback:
    def on_step(self, trainer: "Trainer", loss: torch.Tensor) -> None: ...

    def on_validate(self, trainer: "Trainer", score: torch.Tensor) -> None: ...


class EarlyStopping(Callback):
    def __init__(self, patience: int, measure: bool = False):
        self.patience, self.measure, self.waited = patience, measure, 0
        self.best = torch.tensor(float("inf"))
        self.weights: Dict[str, torch.Tensor] = {}
        self.travel = 0.0

    def on_validate(self, trainer, score):
        if self.measure and self.weights:
            for name, p in trainer.net.named_parameters():
                self.travel += (p.detach() - self.weights[name]).norm().item()  # raises
        if score < self.best - 1e-3:
            self.best, self.waited = score, 0
            self.weights = {k: v.detach().cpu().clone() for k, v in trainer.net.state_dict().items()}
        else:
            self.waited += 1
            trainer.stop = self.waited >= self.patience

    def restore(self, net: nn.Module) -> nn.Module:
        net.load_state_dict(self.weights)
        return net


class GradientStats(Callback):
    """Running mean and variance of each gradient, by Welford's method."""

    def __init__(self, make: Callable[[torch.Tensor], torch.Tensor] = torch.zeros_like):
        self.make, self.n = make, 0
        self.mean: Dict[str, torch.Tensor] = {}
        self.m2: Dict[str, torch.Tensor] = {}

    def on_step(self, trainer, loss):
        self.n += 1
        for name, p in trainer.net.named_parameters():
            mean = self.mean.setdefault(name, self.make(p.detach()))
            delta = p.grad - mean  # raises
            mean += delta / self.n
            self.m2[name] = self.m2.get(name, 0.0) + delta * (p.grad - mean)

    def noise(self) -> Dict[str, float]:
        return {k: float((v / max(self.n - 1, 1)).sqrt().mean()) for k, v in self.m2.items()}


class LossHistory(Callback):
    def __init__(self, length: int):
        self.losses = torch.zeros(length)
        self.filled = 0

    def on_step(self, trainer, loss):
        self.losses[self.filled % len(self.losses)] = loss.detach()
        self.filled += 1


class Trainer:
    def __init__(self, config: TrainConfig, callbacks: Sequence[Callback] = (), scaler: Optional[LossScaler] = None):
        self.config, self.callbacks, self.stop = config, list(callbacks), False
        self.data, self.held = FieldData(), FieldData(8, seed=1)
        self.scales = Standardiser(self.data).to(config.device)
        self.net = FourierNet(config.width)
        self.schedule = TableSchedule(config.lr, config.steps, config.device)
        self.optimizer = HandAdam(self.net.parameters(), self.schedule.rate)
        self.net.to(config.device)
        self.scaler = scaler or LossScaler(config.scale)

    def loss(self, batch: Dict[str, Any]) -> torch.Tensor:
        return nn.functional.mse_loss(self.net(batch["x"]), self.scales.forward(batch["y"]))

    def train_step(self, batch: Dict[str, Any]) -> torch.Tensor:
        loss = self.loss(batch)
        self.net.zero_grad(set_to_none=True)
        self.scaler.enlarge(loss).sum().backward()
        overflow = self.scaler.unscale(self.net.parameters())
        if not overflow:
            self.optimizer.step()
        self.scaler.update(overflow)
        return loss

    @torch.no_grad()
    def collect(self, host: Sequence[str] = ("z", "y")) -> Dict[str, torch.Tensor]:
        kept = defaultdict(list)
        for batch in DataLoader(self.held, self.config.batch):
            batch = to_device(batch, self.config.device)
            found = {"z": self.net(batch["x"]), "y": self.scales.forward(batch["y"])}
            for name, value in found.items():
                kept[name].append(value.cpu() if name in host else value)
        return {name: torch.cat(parts) for name, parts in kept.items()}

    def validate(self, **kwargs) -> torch.Tensor:
        kept = self.collect(**kwargs)
        score = (kept["z"] - kept["y"]).pow(2).mean()  # raises
        for each in self.callbacks:
            each.on_validate(self, score)
        return score

    def fit(self, epochs: int = 2) -> "Trainer":
        for _ in range(epochs):
            for batch in DataLoader(self.data, self.config.batch):
                loss = self.train_step(to_device(batch, self.config.device))
                for each in self.callbacks:
                    each.on_step(self, loss)
            self.validate()
            if self.stop:
                break
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return self.scales.inverse(self.net(torch.from_numpy(x).to(self.config.device))).cpu().numpy()

    def save(self) -> bytes:
        buffer = io.BytesIO()
        parts = {"net": self.net.state_dict(), "opt": self.optimizer.state_dict(), "scales": self.scales.state()}
        torch.save({**parts, "config": asdict(self.config)}, buffer)
        return buffer.getvalue()

    @classmethod
    def resume(cls, blob: bytes, match: bool = True, scales: bool = True) -> "Trainer":
        state = torch.load(io.BytesIO(blob), map_location="cpu")
        trainer = cls(TrainConfig(**state["config"]))
        trainer.net.load_state_dict(state["net"])
        trainer.optimizer.load_state_dict(state["opt"], match)
        trainer.scales.load(state["scales"])
        if scales:
            trainer.scales.to(trainer.config.device)
        return trainer


class ResidualSampler:
    """Draws points of the pool by how wrong the network is there."""

    def __init__(self, size: int = 10):
        self.pool = torch.rand(size, 2)

    def draw(self, net: nn.Module, device: str, count: int, host: bool = True) -> torch.Tensor:
        with torch.no_grad():
            error = (net(self.pool.to(device)) - 1.0).abs().squeeze(1) + 1e-3
        index = torch.multinomial(error, count)
        return self.pool[index.cpu() if host else index].to(device)  # raises


class SplitNet(nn.Module):
    """Stages on several GPUs, with a skip from the first to the last."""

    def __init__(self, devices: Sequence[str], width: int = 8, skip: bool = False):
        super().__init__()
        self.skip, self.devices = skip, devices
        self.lift = nn.Linear(2, width).to(devices[0])
        self.stages = nn.ModuleList(nn.Linear(width, width).to(device) for device in devices)
        for device, stage in zip(devices, self.stages):
            stage.register_forward_pre_hook(lambda module, args, device=device: tuple(a.to(device) for a in args))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = hidden = self.lift(x.to(self.devices[0]))
        for stage in self.stages:
            hidden = stage(hidden).tanh()
        if self.skip:
            hidden = hidden + first  # raises
        return hidden


def global_norm(parameters: Iterable[nn.Parameter], home: Optional[str] = None) -> torch.Tensor:
    squares = [p.grad.pow(2).sum() for p in parameters if p.grad is not None]
    if home is not None:
        squares = [each.to(home) for each in squares]
    return sum(squares).sqrt()  # raises


def backward_of(net: SplitNet) -> SplitNet:
    net(torch.ones(3, 2)).sum().backward()
    return net


class Replicas:
    """Data parallelism by hand."""

    def __init__(self, net: nn.Module, devices: Sequence[str]):
        self.nets = [copy.deepcopy(net).to(device) for device in devices]

    def backward(self, x: torch.Tensor) -> List[float]:
        parts = x.chunk(len(self.nets))
        losses = [net(part.to(next(net.parameters()).device)).pow(2).mean() for net, part in zip(self.nets, parts)]
        for loss in losses:
            loss.backward()
        return [loss.item() for loss in losses]

    @torch.no_grad()
    def reduce(self, stage: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        for main, *others in zip(*(net.parameters() for net in self.nets)):
            for other in others:
                main.grad.add_(stage(other.grad, main.grad))  # raises
            main.grad.div_(len(self.nets))

    @torch.no_grad()
    def broadcast(self) -> None:
        for main, *others in zip(*(net.parameters() for net in self.nets)):
            for other in others:
                other.copy_(main)


def replicas() -> Replicas:
    made = Replicas(FourierNet(8), ["cuda:0", "cuda:1", "cuda:2"])
    made.backward(torch.rand(6, 2))
    return made


def case_fit_and_stop():
    stopper = EarlyStopping(2)
    return stopper.restore(Trainer(TrainConfig(), [stopper, LossHistory(4)]).fit().net)


def case_early_stopping_travel():
    return Trainer(TrainConfig(), [EarlyStopping(2, measure=True)]).fit()


def case_gradient_statistics():
    stats = GradientStats()
    Trainer(TrainConfig(device="cuda:1"), [stats]).fit(1)
    return stats.noise()


def case_gradient_statistics_by_shape():
    return Trainer(TrainConfig(), [GradientStats(lambda p: torch.zeros(p.shape, dtype=p.dtype))]).fit(1)


def case_scaler_of_one_element():
    return Trainer(TrainConfig(), scaler=LossScaler(4.0, (1,))).fit(1)


def case_validate_on_host():
    return Trainer(TrainConfig(device="cuda:3")).validate()


def case_validate_half_on_host():
    return Trainer(TrainConfig(device="cuda:3")).validate(host=("z",))


def case_schedule_rates():
    schedule = TableSchedule(0.1, 4, "cuda")
    return [schedule.rate() for _ in range(6)]


def case_schedule_ahead():
    return TableSchedule(0.1, 4, "cuda").ahead(3)


def case_resume_and_fit():
    return Trainer.resume(Trainer(TrainConfig()).fit(1).save()).fit(1).predict(FieldData(4).points)


def case_resume_optimizer_as_saved():
    return Trainer.resume(Trainer(TrainConfig()).fit(1).save(), match=False).fit(1)


def case_resume_scales_as_saved():
    return Trainer.resume(Trainer(TrainConfig()).fit(1).save(), scales=False).fit(1).predict(FieldData(4).points)


def case_residual_sampler():
    return ResidualSampler().draw(FourierNet(8).cuda(), "cuda", 3)


def case_residual_sampler_index():
    return ResidualSampler().draw(FourierNet(8).cuda(), "cuda", 3, host=False)


def case_split_net_norm_at_home():
    return global_norm(backward_of(SplitNet(["cuda:0", "cuda:1"])).parameters(), "cpu")


def case_split_net_norm():
    return global_norm(backward_of(SplitNet(["cuda:0", "cuda:1"])).parameters())


def case_split_net_ring():
    return backward_of(SplitNet(["cuda:2", "cuda:3", "cuda:2"], skip=True))


def case_split_net_skip():
    return SplitNet(["cuda:0", "cuda:1"], skip=True)(torch.rand(2, 2, device="cuda:1"))


def case_replicas_reduced():
    made = replicas()
    made.reduce(lambda grad, like: grad.to(like.device))
    return made.broadcast()


def case_replicas_reduced_by_type():
    return replicas().reduce(lambda grad, like: grad.to(like.dtype))
