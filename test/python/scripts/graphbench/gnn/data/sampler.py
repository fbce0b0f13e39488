import random

import torch


class NeighborSampler:
    """Cuts the graph on the host, and moves only the piece that is trained on."""

    def __init__(self, graph, size, fanout, seed=5):
        self.graph, self.size, self.fanout = graph, size, fanout
        self.rng = random.Random(seed)
        self.adjacency = [[] for _ in range(graph.num_nodes)]
        for u, v in graph.edge_index.t().tolist():
            self.adjacency[v].append(u)

    def expand(self, seeds):
        nodes = dict.fromkeys(seeds)
        for v in seeds:
            around = self.adjacency[v]
            nodes.update(dict.fromkeys(self.rng.sample(around, min(self.fanout, len(around)))))
        return torch.tensor(list(nodes))

    def batches(self, device):
        seeds = self.graph.train_mask.nonzero().flatten().tolist()
        self.rng.shuffle(seeds)
        for start in range(0, len(seeds), self.size):
            chosen = seeds[start:start + self.size]
            piece = self.graph.subgraph(self.expand(chosen))
            if piece.edge_weight is not None:
                piece.edge_weight = piece.edge_weight.to(device)
            mask = torch.zeros(piece.num_nodes, dtype=torch.bool)
            mask[:len(chosen)] = True
            yield piece.to(device), mask.to(device)
