import io

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from clusters import Clusters, collate
from network import Network
from relax import Relaxer
from settings import get_settings


def setup(s):
    model = Network(s.readout)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3, momentum=0.5)
    return model, optimizer


def snapshot(model, optimizer):
    blob = io.BytesIO()
    torch.save([model.state_dict(), optimizer.state_dict()], blob)
    blob.seek(0)
    return blob


def load(blob, model, optimizer):
    weights, moments = torch.load(blob, map_location='cpu')
    model.load_state_dict(weights)
    optimizer.load_state_dict(moments)


def epoch(model, optimizer, loader, s):
    sums = {'energy': 0.0, 'force': 0.0}
    for graph in loader:
        graph = graph.to(s.device)
        energy, force = model.energy_and_force(graph)
        parts = {'energy': F.mse_loss(energy, graph.energy), 'force': F.l1_loss(force, graph.force)}
        loss = parts['energy'] + s.force_weight * parts['force']
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # raises
        for name, value in parts.items():
            sums[name] += value.item() / len(loader)
    return sums


def evaluate(model, loader, device):
    """Mean absolute errors, in units of the spread of the energies."""
    off, energies = [], []
    for graph in loader:
        energy, _ = model.energy_and_force(graph.to(device), training=False)
        off.append(energy.detach().cpu() - graph.energy)
        energies.append(graph.energy)
    return float(torch.cat(off).abs().mean() / torch.cat(energies).std())


def main():
    s = get_settings()
    torch.manual_seed(4)
    train = DataLoader(Clusters(32), batch_size=8, shuffle=True, collate_fn=collate)
    test = DataLoader(Clusters(8, seed=9), batch_size=8, collate_fn=collate)
    model, optimizer = setup(s)
    model.to(s.device)
    for number in range(s.epochs):
        print(number, {k: round(v, 3) for k, v in epoch(model, optimizer, train, s).items()})
        if number == 0 and s.restart != 'never':
            blob = snapshot(model, optimizer)
            model, optimizer = setup(s)
            if s.restart == 'early':
                load(blob, model, optimizer)
            model.to(s.device)
            if s.restart == 'late':
                load(blob, model, optimizer)
    print('error', round(evaluate(model, test, s.device), 3))
    if s.relax:
        graph = next(iter(test)).to(s.device)
        trace = Relaxer(model).run(graph, s.relax)
        print('relaxed', trace.mean(1).numpy().round(2))


if __name__ == '__main__':
    main()
