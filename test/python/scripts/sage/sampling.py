from collections import namedtuple

import torch

Layer = namedtuple('Layer', 'src dst num_dst')
MiniBatch = namedtuple('MiniBatch', 'nodes layers seeds')


class NeighbourSampler:
    """Samples on the CPU; the result is moved as a whole."""

    def __init__(self, graph, fanouts, importance=None):
        self.graph = graph
        self.fanouts = fanouts
        self.importance = importance

    def neighbours(self, node, k):
        lo, hi = self.graph.indptr[node].item(), self.graph.indptr[node + 1].item()
        row = self.graph.indices[lo:hi]
        if self.importance is None:
            return row[torch.randint(len(row), (k,))]
        weight = self.importance[row] + 1e-3
        return row[torch.multinomial(weight, k, replacement=True)]

    def sample(self, seeds):
        frontier = list(seeds.tolist())
        position = {v: i for i, v in enumerate(frontier)}
        layers = []
        for k in self.fanouts:
            src, dst, num_dst = [], [], len(frontier)
            for i in range(num_dst):
                for u in self.neighbours(frontier[i], k).tolist():
                    if u not in position:
                        position[u] = len(frontier)
                        frontier.append(u)
                    src.append(position[u])
                    dst.append(i)
            layers.append(Layer(torch.tensor(src), torch.tensor(dst), num_dst))
        return MiniBatch(torch.tensor(frontier), layers[::-1], seeds)

    def batches(self, size, seed=None):
        gen = None
        if seed is not None:
            gen = torch.Generator()
            gen.manual_seed(seed)
        order = torch.randperm(self.graph.num_nodes, generator=gen)
        for chunk in order.split(size):
            yield self.sample(chunk)


def layers_to(layers, device):
    return [layer._replace(src=layer.src.to(device), dst=layer.dst.to(device)) for layer in layers]


class HistoricalImportance:
    """Keeps how much loss each node had, to sample it more often."""

    def __init__(self, n, momentum=0.9):
        self.score = torch.ones(n)
        self.momentum = momentum

    def record(self, nodes, losses):
        fresh = self.score[nodes] * self.momentum + losses.detach().cpu() * (1 - self.momentum)
        self.score[nodes] = fresh
        return self.score
