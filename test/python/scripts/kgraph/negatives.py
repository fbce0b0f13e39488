import torch


class Uniform:
    def __init__(self, graph, count):
        self.entities, self.count = graph.entities, count

    def __call__(self, triples):
        return torch.randint(self.entities, (len(triples), self.count), device=triples.device)


class Typed:
    """Wrong tails of the right kind, drawn reproducibly."""

    def __init__(self, graph, count, seed=11):
        kinds = [graph.kinds[graph.tail_kind(r)] for r in range(4)]
        self.first = torch.tensor([k.start for k in kinds])
        self.size = torch.tensor([len(k) for k in kinds])
        self.count = count
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, triples):
        relations = triples[:, 1].cpu()
        u = torch.rand(len(relations), self.count, generator=self.generator)
        drawn = self.first[relations, None] + (u * self.size[relations, None]).long()
        return drawn.to(triples.device)


class Batchwise:
    """The tails of other triples of the batch."""

    def __init__(self, graph, count, seed=11):
        self.count = count
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, triples):
        order = torch.randint(len(triples), (len(triples), self.count), generator=self.generator)
        return triples[:, 2][order]


class Near:
    """Entities whose numbers are close to that of the true tail."""

    def __init__(self, graph, count, reach=5, seed=11):
        self.entities, self.count, self.reach = graph.entities, count, reach
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, triples):
        size = (len(triples), self.count)
        step = torch.randint(1, self.reach, size, generator=self.generator, device=triples.device)  # raises
        return (triples[:, 2:] + step) % self.entities


NEGATIVES = {'uniform': Uniform, 'typed': Typed, 'batch': Batchwise, 'near': Near}
