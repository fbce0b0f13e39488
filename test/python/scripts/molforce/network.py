import math

import torch
import torch.nn as nn

from clusters import ATOM_ENERGY


class Smearing(nn.Module):
    def __init__(self, stop, count):
        super().__init__()
        centres = torch.linspace(0, stop, count)
        self.factor = -0.5 / float(centres[1] - centres[0]) ** 2
        self.register_buffer('centres', centres)

    def forward(self, r):
        return torch.exp(self.factor * (r[:, None] - self.centres) ** 2)


class Envelope:
    """Goes to zero at the cutoff."""

    def __init__(self, cutoff):
        self.cutoff = torch.tensor(float(cutoff))

    def __call__(self, r):
        return 0.5 * (torch.cos(math.pi * r / self.cutoff) + 1) * (r < self.cutoff)


class Interaction(nn.Module):
    def __init__(self, width, rbf):
        super().__init__()
        self.filter = nn.Sequential(nn.Linear(rbf, width), nn.SiLU(), nn.Linear(width, width))
        self.update = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, h, edges, rbf, envelope):
        target, source = edges
        message = h[source] * self.filter(rbf) * envelope[:, None]
        return h + self.update(torch.zeros_like(h).index_add(0, target, message))


class SumReadout(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def atomic(self, h, kinds):
        return self.net(h).squeeze(1)

    def forward(self, h, graph):
        total = torch.zeros(graph.count, device=h.device)
        return total.index_add(0, graph.owner, self.atomic(h, graph.kinds))


class ShiftedReadout(SumReadout):
    """Adds what the lone atoms have."""

    def __init__(self, width, reference=ATOM_ENERGY):
        super().__init__(width)
        self.reference = reference

    def atomic(self, h, kinds):
        return super().atomic(h, kinds) + self.reference[kinds]  # raises


class Network(nn.Module):
    def __init__(self, readout, width=16, rbf=8, cutoff=4.0, layers=2):
        super().__init__()
        self.embed = nn.Embedding(2, width)
        self.smear = Smearing(cutoff, rbf)
        self.envelope = Envelope(cutoff)
        self.layers = nn.ModuleList(Interaction(width, rbf) for _ in range(layers))
        self.readout = {'sum': SumReadout, 'shifted': ShiftedReadout}[readout](width)

    def forward(self, graph):
        h = self.embed(graph.kinds)
        target, source = graph.edges
        r = (graph.positions[target] - graph.positions[source]).pow(2).sum(1).add(1e-9).sqrt()
        rbf, envelope = self.smear(r), self.envelope(r)
        for layer in self.layers:
            h = layer(h, graph.edges, rbf, envelope)
        return self.readout(h, graph)

    def energy_and_force(self, graph, training=True):
        graph.positions.requires_grad_()
        energy = self(graph)
        force, = torch.autograd.grad(-energy.sum(), graph.positions, create_graph=training)
        return energy, force
