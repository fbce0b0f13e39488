from __future__ import annotations

import torch
from torch.utils.data import DataLoader

from config import TrainConfig, parse_config
from data import SineSeries, StandardScaler, device_batches
from model import Forecaster
from objectives import ForecastMetric, make_objective


class Trainer:
    def __init__(self, cfg: TrainConfig) -> None:
        self.cfg = cfg
        self.device = cfg.resolve_device()
        m = cfg.model
        self.data = SineSeries(m.n_series, m.context, m.horizon)
        self.loader = DataLoader(self.data, batch_size=cfg.batch_size, shuffle=True)
        outputs = len(cfg.quantiles) if cfg.loss == "quantile" else 1
        self.model = Forecaster(m, outputs).to(self.device)
        self.scaler = StandardScaler().fit(self.data.values).to(self.device)
        self.objective = make_objective(cfg.loss, cfg.quantiles)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda s: min(1.0, (s + 1) / cfg.warmup))

    def point(self, pred: torch.Tensor) -> torch.Tensor:
        return pred if pred.dim() == 3 else pred[..., pred.size(-1) // 2]

    def epoch(self) -> float:
        self.model.train()
        losses = []
        for batch in device_batches(self.loader, self.device):
            past, future = self.scaler.transform(batch.past), self.scaler.transform(batch.future)
            loss = self.objective(self.model(past, batch.hour), future)
            self.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.schedule.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    @torch.no_grad()
    def evaluate(self) -> None:
        self.model.eval()
        metric = ForecastMetric(self.cfg.metric)
        for batch in self.loader:
            past = self.scaler.transform(batch.past.to(self.model.device))
            pred = self.scaler.inverse(self.point(self.model(past, batch.hour.to(past.device))))
            metric.update(pred, batch.future.to(pred.device))
        for step, value in enumerate(metric.compute()):
            print(f"  h+{step + 1}: {self.cfg.metric} {value:.4f}")

    def run(self) -> None:
        for epoch in range(self.cfg.epochs):
            print(f"epoch {epoch}: {self.epoch():.4f}")
        self.evaluate()


if __name__ == "__main__":
    torch.manual_seed(0)
    Trainer(parse_config()).run()
