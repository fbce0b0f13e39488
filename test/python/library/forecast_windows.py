"""Tabular models and forecasting: encoders of columns, scalers, windows, sequence models, losses and evaluation."""
import math
from dataclasses import dataclass, field
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


@dataclass
class ForecastConfig:
    input_dim: int = 3
    hidden: int = 16
    context: int = 12
    horizon: int = 4
    quantiles: Tuple[float, ...] = (0.1, 0.5, 0.9)
    cardinalities: List[int] = field(default_factory=lambda: [4, 3])


class Scaler:
    """Fitted on the training series (as a rule in host memory), applied to batches."""

    def fit(self, x: Tensor) -> "Scaler":
        self.shift, self.scale = self.statistics(x)
        return self

    def statistics(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        raise NotImplementedError

    def transform(self, x: Tensor) -> Tensor:
        return (x - self.shift) / self.scale  # raises

    def inverse(self, x: Tensor) -> Tensor:
        return x * self.scale.to(x.device) + self.shift.to(x.device)


class StandardScaler(Scaler):
    def statistics(self, x):
        flat = x.reshape(-1, x.shape[-1])
        return flat.mean(0), flat.std(0).clamp_min(1e-5)


class GlobalScaler(Scaler):
    def statistics(self, x):
        return x.mean(), x.std().clamp_min(1e-5)


class RevIN(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-5):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x: Tensor, mode: str) -> Tensor:
        if mode == "norm":
            self._mean = x.mean(1, keepdim=True).detach()
            self._std = (x.var(1, keepdim=True, unbiased=False) + self.eps).sqrt().detach()
            return (x - self._mean) / self._std * self.weight + self.bias
        return (x - self.bias) / (self.weight + self.eps) * self._std + self._mean


class CategoricalEmbedding(nn.Module):
    """All columns in one table; the codes of a column begin at its offset."""

    def __init__(self, cardinalities: Sequence[int], dim: int):
        super().__init__()
        self.table = nn.Embedding(sum(cardinalities), dim)
        self.offsets = torch.tensor([0] + list(cardinalities[:-1])).cumsum(0)

    def forward(self, codes: Tensor) -> Tensor:
        return self.table(self.shifted(codes)).flatten(1)

    def shifted(self, codes: Tensor) -> Tensor:
        return codes.add(self.offsets)  # raises

    def column(self, codes: Tensor, index: int) -> Tensor:
        return self.table(codes[:, index] + self.offsets[index])


class PiecewiseLinearEncoder(nn.Module):
    """Numeric columns by quantile bins (Gorishniy et al., 2022)."""

    def __init__(self, num_bins: int = 4):
        super().__init__()
        self.num_bins = num_bins
        self.edges: List[Tensor] = []

    def fit(self, x: Tensor) -> "PiecewiseLinearEncoder":
        q = torch.linspace(0, 1, self.num_bins + 1)
        self.edges = [torch.quantile(col, q).contiguous() for col in x.cpu().unbind(1)]
        return self

    def codes(self, x: Tensor) -> Tensor:
        return torch.stack([torch.bucketize(c.contiguous(), e[1:-1]) for c, e in zip(x.unbind(1), self.edges)], 1)  # raises

    def forward(self, x: Tensor) -> Tensor:
        parts = []
        for col, edges in zip(x.unbind(1), self.edges):
            left, width = edges[:-1].to(x.device), edges.diff().clamp_min(1e-6).to(x.device)
            parts.append(((col[:, None] - left) / width).clamp(0, 1))
        return torch.cat(parts, 1)


class Imputer(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.register_buffer("fill", torch.zeros(dim))

    def fit(self, x: np.ndarray) -> "Imputer":
        self.fill.copy_(torch.from_numpy(np.nanmean(x, axis=0)))
        return self

    def forward(self, x: Tensor) -> Tensor:
        return torch.where(torch.isnan(x), self.fill.expand_as(x), x)


class WindowSampler:
    def __init__(self, series: Tensor, cfg: ForecastConfig):
        self.series, self.cfg = series, cfg
        self.length = cfg.context + cfg.horizon

    def __iter__(self) -> Iterator[Tuple[Tensor, Tensor]]:
        for window in self.series.unfold(0, self.length, self.length).transpose(1, 2).split(2):
            yield window[:, :self.cfg.context], window[:, self.cfg.context:, 0]

    def random(self, n: int) -> Tensor:
        starts = torch.randint(len(self.series) - self.length, (n, 1))
        return self.series[starts + torch.arange(self.length)]

    def hardest(self, errors: Tensor, n: int) -> Tensor:
        """The windows with the largest errors, one error a start."""
        starts = errors.topk(n).indices.unsqueeze(1)
        index = starts + torch.arange(self.length)  # raises
        return self.series[index]


class Seq2Seq(nn.Module):
    def __init__(self, cfg: ForecastConfig):
        super().__init__()
        self.cfg = cfg
        self.encoder = nn.GRU(cfg.input_dim, cfg.hidden, batch_first=True)
        self.cell = nn.GRUCell(1, cfg.hidden)
        self.head = nn.Linear(cfg.hidden, len(cfg.quantiles))

    def init_hidden(self, batch_size: int) -> Tensor:
        return torch.zeros(self.encoder.num_layers, batch_size, self.cfg.hidden)

    def encode(self, x: Tensor) -> Tensor:
        return self.encoder(x)[1][-1]

    def encode_stateful(self, x: Tensor, state: Optional[Tensor] = None) -> Tensor:
        state = self.init_hidden(x.size(0)) if state is None else state
        return self.encoder(x, state)[1]  # raises

    def encode_ragged(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)  # raises
        return pad_packed_sequence(self.encoder(packed)[0], batch_first=True)[0]

    def forward(self, x: Tensor, target: Optional[Tensor] = None, teacher: float = 0.0) -> Tensor:
        state, step, out = self.encode(x), x[:, -1, :1], []
        for t in range(self.cfg.horizon):
            state = self.cell(step, state)
            out.append(self.head(state))
            step = out[-1][:, 1:2].detach().clone()
            if target is not None:
                forced = torch.rand(x.size(0)) < teacher
                step[forced] = target[forced, t, None]
        return torch.stack(out, 1)


class PatchTransformer(nn.Module):
    def __init__(self, cfg: ForecastConfig, causal: bool = False):
        super().__init__()
        self.cfg, self.causal = cfg, causal
        self.norm = RevIN(cfg.input_dim)
        self.qkv = nn.Linear(cfg.input_dim, 3 * cfg.hidden)
        self.register_buffer("pe", self.sinusoid(cfg.context, cfg.hidden), persistent=False)
        self.head = nn.Linear(cfg.hidden, cfg.horizon)
        self._masks: Dict[int, Tensor] = {}

    @staticmethod
    def sinusoid(length: int, dim: int) -> Tensor:
        angle = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, dim, 2) / dim)
        return torch.cat([angle.sin(), angle.cos()], dim=1)

    def mask(self, length: int) -> Tensor:
        if length not in self._masks:
            self._masks[length] = torch.ones(length, length, dtype=torch.bool).triu(1)
        return self._masks[length]

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self.qkv(self.norm(x, "norm")) + self.pe.repeat(1, 3)[:x.shape[1]]).chunk(3, -1)
        att = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
        if self.causal:
            att.masked_fill_(self.mask(x.shape[1]), float("-inf"))  # raises
        return self.head((att.softmax(-1) @ v)[:, -1])


def pinball_loss(pred: Tensor, target: Tensor, quantiles: Iterable[float]) -> Tensor:
    losses = []
    for i, q in enumerate(quantiles):
        err = target - pred[..., i]
        losses.append(torch.max(q * err, (q - 1) * err))
    return torch.stack(losses).mean()


class FocalLoss(nn.Module):
    def __init__(self, counts: Sequence[int], gamma: float = 2.0):
        super().__init__()
        self.gamma = torch.tensor(gamma)
        self.alpha = 1.0 / torch.tensor(counts, dtype=torch.float)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        ce = F.cross_entropy(logits, target, weight=self.alpha, reduction="none")  # raises
        return ((1 - torch.exp(-ce)) ** self.gamma * ce).mean()

    def unweighted(self, logits: Tensor, target: Tensor) -> Tensor:
        ce = F.cross_entropy(logits, target, reduction="none")
        return ((1 - torch.exp(-ce)) ** self.gamma * ce).mean()


class Trainer:
    def __init__(self, model: nn.Module, loss: Callable[[Tensor, Tensor], Tensor], lr: float = 1e-3):
        self.model, self.loss, self.device = model, loss, next(model.parameters()).device
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.history: List[float] = []

    def fit(self, batches: Iterable[Tuple[Tensor, Tensor]]) -> "Trainer":
        for x, y in batches:
            self.optimizer.zero_grad()
            loss = self.loss(self.model(x.to(self.device)), y.to(self.device))
            loss.backward()
            self.optimizer.step()  # raises
            self.history.append(loss.item())
        return self

    def to(self, device: str) -> "Trainer":
        self.model.to(device)
        self.device = torch.device(device)
        return self

    @torch.no_grad()
    def predict(self, batches: Iterable[Tuple[Tensor, Tensor]]) -> Tuple[List[Tensor], List[Tensor]]:
        pairs = [(self.model(x.to(self.device)), y) for x, y in batches]
        return [p for p, _ in pairs], [y for _, y in pairs]

    def mase(self, batches: Iterable[Tuple[Tensor, Tensor]], naive: float) -> float:
        preds, targets = map(torch.cat, self.predict(batches))
        return F.l1_loss(preds, targets).item() / naive  # raises

    def rmse(self, batches: Iterable[Tuple[Tensor, Tensor]]) -> float:
        errors = [F.mse_loss(p.cpu(), y).item() for p, y in zip(*self.predict(batches))]
        return float(np.sqrt(np.mean(errors)))

    def residuals(self, batches: Iterable[Tuple[Tensor, Tensor]]) -> np.ndarray:
        preds, targets = self.predict(batches)
        return np.concatenate(targets) - np.concatenate(preds)  # raises
