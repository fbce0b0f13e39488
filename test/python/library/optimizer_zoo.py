"""Optimizers, wrappers and second-order solvers written by hand, for models on one or several GPUs."""
import io
import math
from collections import deque
from dataclasses import dataclass
from typing import Any, Callable, Deque, Dict, Iterable, List, Optional, Tuple

import torch
import torch.nn as nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch.optim import Optimizer


@dataclass
class ZooConfig:
    lr: float = 0.05
    momentum: float = 0.9
    eps: float = 1e-8
    betas: Tuple[float, float] = (0.9, 0.99)
    history: int = 4
    damping: float = 1e-3
    levels: int = 16


class HandOptimizer(Optimizer):
    """Template: subclasses say how state begins and how a direction comes from a gradient."""

    def __init__(self, params: Iterable[nn.Parameter], config: Optional[ZooConfig] = None):
        self.config = config or ZooConfig()
        super().__init__(params, {"lr": self.config.lr})

    def begin(self, p: torch.Tensor) -> Dict[str, Any]:
        return {}

    def direction(self, p: torch.Tensor, grad: torch.Tensor, state: Dict[str, Any]) -> torch.Tensor:
        raise NotImplementedError

    def each(self) -> Iterable[Tuple[Dict[str, Any], torch.Tensor]]:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    yield group, p

    @torch.no_grad()
    def step(self, closure=None):
        for group, p in self.each():
            state = self.state[p]
            if not state:
                state.update(self.begin(p), step=torch.tensor(0.0))
            state["step"] += 1
            p.sub_(group["lr"] * self.direction(p, p.grad, state))


class CorrectedAdam(HandOptimizer):
    def begin(self, p):
        return {"first": torch.zeros_like(p), "second": torch.zeros_like(p)}

    def direction(self, p, grad, state):
        low, high = self.config.betas
        state["first"].mul_(low).add_(grad, alpha=1 - low)
        state["second"].mul_(high).addcmul_(grad, grad, value=1 - high)
        scale = torch.sqrt(1 - high ** state["step"]) / (1 - low ** state["step"])
        return scale * state["first"] / (state["second"].sqrt() + self.config.eps)


class HostMomentum(HandOptimizer):
    def begin(self, p):
        return {"velocity": torch.zeros(p.shape)}

    def direction(self, p, grad, state):
        state["velocity"].mul_(self.config.momentum).add_(grad.cpu())
        return state["velocity"].to(p.device)


class HostNesterov(HostMomentum):
    def direction(self, p, grad, state):
        ahead = super().direction(p, grad, state).mul(self.config.momentum) + grad
        pull = self.config.damping * state["velocity"].norm()
        return torch.addcmul(ahead, grad, state["velocity"].sign(), value=float(pull))  # raises


class KroneckerOptimizer(HandOptimizer):
    """Left and right statistics of matrix gradients; vectors take plain steps."""

    def begin(self, p):
        if p.dim() != 2:
            return {}
        return {"left": self.config.damping * torch.eye(p.shape[0]), "right": torch.eye(p.shape[1], device=p.device)}

    @staticmethod
    def root(matrix: torch.Tensor, power: float) -> torch.Tensor:
        values, vectors = torch.linalg.eigh(matrix)
        return vectors @ torch.diag(values.clamp_min(1e-6) ** power) @ vectors.t()

    def direction(self, p, grad, state):
        if "left" not in state:
            return grad
        state["right"].addmm_(grad.t(), grad)
        state["left"].addmm_(grad, grad.t())  # raises
        return self.root(state["left"], -0.25) @ grad @ self.root(state["right"], -0.25)


class OrthogonalMomentum(HandOptimizer):
    """Newton-Schulz orthogonalisation of the momentum."""

    coefficients = (3.4445, -4.7750, 2.0315)

    def begin(self, p):
        return {"buffer": p.new_zeros(p.shape)}

    def direction(self, p, grad, state):
        buffer = state["buffer"].mul_(self.config.momentum).add_(grad)
        if buffer.dim() != 2:
            return buffer
        a, b, c = torch.tensor(self.coefficients)
        x = buffer / (buffer.norm() + self.config.eps)
        for _ in range(3):
            gram = x @ x.t()
            x = a * x + (b * gram + c * gram @ gram) @ x
        return x


class ResilientBackprop(HandOptimizer):
    """A step size for each weight, that grows while the sign of the gradient stays."""

    def begin(self, p):
        return {"previous": torch.zeros_like(p), "size": torch.ones_like(p)}

    def factors(self, agreement: torch.Tensor) -> torch.Tensor:
        table = torch.tensor([0.5, 1.0, 1.2])
        return table.to(agreement.device)[agreement.sign().long() + 1]

    def direction(self, p, grad, state):
        factor = self.factors(grad * state["previous"])
        state["size"].mul_(factor).clamp_(1e-3, 10)
        state["previous"].copy_(grad)
        return grad.sign() * state["size"]


class LangevinOptimizer(HandOptimizer):
    def __init__(self, params, config: Optional[ZooConfig] = None, temperature: float = 1e-3, seed: Optional[int] = None):
        super().__init__(params, config)
        self.temperature = temperature
        self.generator = None if seed is None else torch.Generator().manual_seed(seed)

    def noise(self, p: torch.Tensor) -> torch.Tensor:
        if self.generator is None:
            return torch.randn_like(p)
        return torch.randn(p.shape, generator=self.generator)

    def direction(self, p, grad, state):
        return torch.sub(grad, self.noise(p), alpha=math.sqrt(2 * self.temperature / self.config.lr))  # raises


class QuantizedMomentum(HandOptimizer):
    """Momentum kept as small integers with one scale a tensor."""

    def __init__(self, params, config: Optional[ZooConfig] = None, midpoint_rounding: bool = False):
        super().__init__(params, config)
        self.codes = torch.linspace(-1, 1, self.config.levels)
        self.midpoints = (self.codes[1:] + self.codes[:-1]) / 2
        self.midpoint_rounding = midpoint_rounding

    def begin(self, p):
        return {"code": torch.zeros_like(p, dtype=torch.uint8), "scale": p.new_zeros(())}

    def decode(self, state) -> torch.Tensor:
        return self.codes.to(state["code"].device)[state["code"].long()] * state["scale"]

    def encode(self, unit: torch.Tensor) -> torch.Tensor:
        if self.midpoint_rounding:
            return torch.bucketize(unit, self.midpoints).byte()  # raises
        return ((unit + 1) / 2 * (self.config.levels - 1)).round().byte()

    def direction(self, p, grad, state):
        moment = self.config.momentum * self.decode(state) + grad
        state["scale"] = moment.abs().max().clamp_min(self.config.eps)
        state["code"] = self.encode(moment / state["scale"])
        return moment


class FlatAdam:
    """One vector for all weights of a model on one device."""

    def __init__(self, model: nn.Module, config: ZooConfig):
        self.model, self.config = model, config
        self.moment = torch.zeros_like(parameters_to_vector(model.parameters()))
        self.square = self.moment.clone()

    def gradient(self) -> torch.Tensor:
        return parameters_to_vector([p.grad for p in self.model.parameters()])

    @torch.no_grad()
    def step(self):
        grad = self.gradient()
        low, high = self.config.betas
        self.square.mul_(high).addcmul_(grad, grad, value=1 - high)  # raises
        self.moment.mul_(low).add_(grad, alpha=1 - low)
        flat = parameters_to_vector(self.model.parameters())
        vector_to_parameters(flat - self.config.lr * self.moment / (self.square.sqrt() + self.config.eps),
                             self.model.parameters())

    def save(self) -> bytes:
        stream = io.BytesIO()
        torch.save({"moment": self.moment, "square": self.square}, stream)
        return stream.getvalue()

    def load(self, data: bytes, exact: bool = False):
        state = torch.load(io.BytesIO(data), map_location="cpu")
        if exact:
            self.moment, self.square = state["moment"], state["square"]
        else:
            self.moment.copy_(state["moment"])
            self.square.copy_(state["square"])


class SlowWeights:
    """Lookahead and averaging with a slow copy of the weights in host memory."""

    def __init__(self, optimizer: Optimizer, every: int = 2, rate: float = 0.5):
        self.optimizer, self.every, self.rate, self.count = optimizer, every, rate, 0
        self.slow = [p.detach().clone().cpu() for p in self.weights()]

    def weights(self) -> List[nn.Parameter]:
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    @torch.no_grad()
    def step(self):
        self.optimizer.step()
        self.count += 1
        if self.count % self.every == 0:
            for slow, p in zip(self.slow, self.weights()):
                slow.add_(p.cpu() - slow, alpha=self.rate)
                p.copy_(slow)

    def distance(self) -> float:
        gaps = [torch.dist(slow, p.detach()) for slow, p in zip(self.slow, self.weights())]  # raises
        return math.sqrt(sum(gap.item() ** 2 for gap in gaps))


class GradientClipper:
    """Global norm over parameters that may lie on several GPUs."""

    def __init__(self, limit: float = 1.0):
        self.limit = limit

    def gradients(self, model: nn.Module) -> List[torch.Tensor]:
        return [p.grad for p in model.parameters() if p.grad is not None]

    def norm(self, model: nn.Module) -> torch.Tensor:
        grads = self.gradients(model)
        home = grads[0].device
        return torch.stack([grad.norm().to(home) for grad in grads]).norm()

    def clip(self, model: nn.Module) -> float:
        total = self.norm(model).item()
        for grad in self.gradients(model):
            grad.mul_(min(1.0, self.limit / (total + 1e-6)))
        return total

    def squared_norm(self, model: nn.Module) -> torch.Tensor:
        total = torch.tensor(0.0)
        for grad in self.gradients(model):
            total = total + grad.square().sum()  # raises
        return total

    def flat(self, model: nn.Module) -> torch.Tensor:
        return torch.cat([grad.flatten().cpu() for grad in self.gradients(model)])

    def flat_weights(self, model: nn.Module) -> torch.Tensor:
        return parameters_to_vector(model.parameters())  # raises


class LossScaler:
    """Dynamic scale of the loss for half precision."""

    def __init__(self, scale: float = 2.0 ** 8, interval: int = 2):
        self.scale_value = torch.full((1,), scale)
        self.interval, self.good = interval, 0

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        return loss * self.scale_value[0]

    def scale_all(self, losses: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
        return {name: loss * self.scale_value for name, loss in losses.items()}  # raises

    def unscale(self, optimizer: Optimizer) -> bool:
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.grad.div_(self.scale_value.item())
                finite = finite and bool(torch.isfinite(p.grad).all())
        return finite

    def update(self, finite: bool):
        self.good = self.good + 1 if finite else 0
        self.scale_value *= 0.5 if not finite else 2.0 if self.good % self.interval == 0 else 1.0


class TopKCompressor:
    """Sends the largest entries of a gradient; what is left is added to the next one."""

    def __init__(self, share: float = 0.25):
        self.share = share
        self.residual: Dict[str, torch.Tensor] = {}

    def compress(self, name: str, grad: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        flat = grad.flatten() + self.residual.get(name, torch.tensor(0.0))
        where = flat.abs().topk(max(1, int(self.share * flat.numel()))).indices
        self.residual[name] = flat.index_fill(0, where, 0.0)
        return flat[where].cpu(), where.cpu()

    def decompress(self, message: Tuple[torch.Tensor, torch.Tensor], like: torch.Tensor) -> torch.Tensor:
        values, where = (part.to(like.device) for part in message)
        return torch.zeros_like(like).flatten().scatter(0, where, values).view_as(like)

    def accumulate(self, messages: List[Tuple[torch.Tensor, torch.Tensor]], into: torch.Tensor) -> torch.Tensor:
        flat = into.flatten().clone()
        for values, where in messages:
            flat = torch.scatter_add(flat, 0, where, values)  # raises
        return flat.view_as(into)


class TaskBalancer:
    """Weights of several losses by how slowly each falls, and gradients that do not conflict."""

    def __init__(self, tasks: List[str], temperature: float = 2.0):
        self.tasks, self.temperature = tasks, temperature
        self.initial: Optional[torch.Tensor] = None

    def stacked(self, losses: Dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.stack([losses[task] for task in self.tasks])

    def weights(self, losses: Dict[str, torch.Tensor]) -> torch.Tensor:
        now = self.stacked(losses).detach()
        if self.initial is None:
            self.initial = now.cpu().clamp_min(1e-6)
            return torch.ones_like(now)
        return (now / self.initial / self.temperature).softmax(0) * len(self.tasks)  # raises

    def uniform(self, losses: Dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.dot(self.stacked(losses), torch.full_like(self.stacked(losses), 1 / len(self.tasks)))


class LimitedMemory:
    """Two-loop recursion over the last pairs of steps and gradient changes."""

    def __init__(self, config: ZooConfig):
        self.pairs: Deque[Tuple[torch.Tensor, torch.Tensor]] = deque(maxlen=config.history)
        self.rho: Deque[float] = deque(maxlen=config.history)

    def push(self, step: torch.Tensor, change: torch.Tensor):
        curvature = torch.dot(step, change)
        if curvature > 1e-10:
            self.pairs.append((step, change))
            self.rho.append(1 / curvature.item())

    def direction(self, grad: torch.Tensor) -> torch.Tensor:
        q, alphas = grad.clone(), torch.zeros(len(self.pairs))
        for i in reversed(range(len(self.pairs))):
            step, change = self.pairs[i]
            alphas[i] = self.rho[i] * torch.dot(step, q)
            q = q - alphas[i] * change
        for i, (step, change) in enumerate(self.pairs):
            q = q + (alphas[i] - self.rho[i] * torch.dot(change, q)) * step
        return -q

    def scaled_steps(self) -> torch.Tensor:
        steps = torch.stack([step for step, _ in self.pairs], 1)
        return torch.mv(steps, torch.tensor(list(self.rho)))  # raises


class LeastSquaresSolver:
    """Damped Gauss-Newton steps; the normal equations are solved directly or by conjugate gradients."""

    def __init__(self, residual: Callable[[torch.Tensor], torch.Tensor], config: ZooConfig):
        self.residual, self.config = residual, config

    def normal(self, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        jacobian = torch.autograd.functional.jacobian(self.residual, x)
        return jacobian.t() @ jacobian, jacobian.t() @ self.residual(x)

    def conjugate(self, matrix: torch.Tensor, b: torch.Tensor, steps: int = 4) -> torch.Tensor:
        x, r = torch.zeros_like(b), b.clone()
        d = r
        for _ in range(steps):
            image = matrix @ d + self.config.damping * d
            rate = r.dot(r) / (d.dot(image) + self.config.eps)
            x, fresh = x + rate * d, r - rate * image
            d, r = fresh + fresh.dot(fresh) / (r.dot(r) + self.config.eps) * d, fresh
        return x

    def iterate(self, x: torch.Tensor) -> torch.Tensor:
        return x - self.conjugate(*self.normal(x))

    def direct(self, x: torch.Tensor) -> torch.Tensor:
        matrix, b = self.normal(x)
        matrix.diagonal().add_(torch.linspace(1, 2, len(b)).mul(self.config.damping))  # raises
        return x - torch.linalg.solve(matrix, b)
