"""run.py [name=value ...]: see config.py for the names."""
import io
import sys

import torch
from torch.utils.data import DataLoader

from config import Config, with_overrides
from data import Spirals
from model import LatentODE


class Annealer:
    """The weight of the KL term; it is a tensor so that it goes along in checkpoints."""

    def __init__(self, steps):
        self.steps = steps
        self.value = torch.tensor(0.0)

    def step(self):
        self.value = torch.clamp(self.value + 1.0 / self.steps, max=1.0)
        return self.value


def transfer(batch, device):
    return {k: v.to(device) for k, v in batch.items()}


def train(model, optimizer, loader, config):
    annealer = Annealer(config.kl_warmup)
    for epoch in range(config.epochs):
        total = 0.0
        for batch in loader:
            loss = -model.elbo(transfer(batch, model.device), annealer.step())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += float(loss)
        print(f'epoch {epoch}: loss {total / len(loader):.2f}, evaluations {model.field.evaluations}')
        model.field.evaluations = 0


@torch.no_grad()
def reconstruct(model, loader):
    error = torch.zeros(2)
    count = 0
    for batch in loader:
        moved = transfer(batch, model.device)
        z = model.encode(moved['values'], moved['seen'], moved['times']).mean
        made = model.decode(z, moved['times']).cpu()
        error += ((made - batch['values']).abs() * batch['seen'][..., None]).sum((0, 1))
        count += int(batch['seen'].sum())
    return (error / count).tolist()


@torch.no_grad()
def forecast(model, batch, steps, horizon=1.0):
    batch = transfer(batch, model.device)
    z = model.encode(batch['values'], batch['seen'], batch['times']).mean
    last = float(batch['times'][-1])
    grid = torch.cat([torch.zeros(1), torch.linspace(last, last + horizon, steps)])
    return model.decode(z, grid)[:, 1:]


def reloaded(model, config):
    blob = io.BytesIO()
    torch.save(model.state_dict(), blob)
    blob.seek(0)
    other = LatentODE(2, config).to(config.device)
    other.load_state_dict(torch.load(blob, map_location='cpu'))
    return other


def main():
    config = with_overrides(Config(), sys.argv[1:])
    if not torch.cuda.is_available():
        config.device = 'cpu'
    torch.manual_seed(3)
    dataset = Spirals(48)
    loader = DataLoader(dataset, batch_size=config.batch, shuffle=True, collate_fn=dataset.collate)
    model = LatentODE(2, config).to(config.device)
    optimizer = torch.optim.Adamax(model.parameters(), lr=config.lr)
    train(model, optimizer, loader, config)
    if config.checkpoint:
        model = reloaded(model, config)
    print('reconstruction', [round(v, 3) for v in reconstruct(model, loader)])
    if config.forecast:
        ahead = forecast(model, next(iter(loader)), config.forecast_steps)
        print('forecast', ahead.mean((0, 1)).cpu().numpy().round(3))


if __name__ == '__main__':
    main()
