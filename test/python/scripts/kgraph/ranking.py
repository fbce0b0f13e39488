import torch


class Known:
    """Takes what is known to be true out of a ranking."""

    def __init__(self, graph):
        self.graph = graph

    def __call__(self, scores, triples):
        for row, (h, r, t) in enumerate(triples.tolist()):
            others = torch.tensor(sorted(self.graph.tails[h, r] - {t}), dtype=torch.long)
            scores[row, others] = -float('inf')
        return scores


class KnownKinds(Known):
    """Also what is of another kind; the masks are made once."""

    def __init__(self, graph, relations):
        super().__init__(graph)
        self.wrong = torch.ones(relations, graph.entities, dtype=torch.bool)
        for r in range(relations):
            self.wrong[r, list(graph.kinds[graph.tail_kind(r)])] = False

    def __call__(self, scores, triples):
        wrong = torch.stack([self.wrong[r] for r in triples[:, 1].tolist()])
        return super().__call__(scores.masked_fill(wrong, -float('inf')), triples)  # raises


@torch.no_grad()
def rank(model, triples, remove, device, chunk=16, on_host=False):
    model.eval()
    ranks = []
    for part in triples.split(chunk):
        part = part.to(device)
        scores = model(part[:, 0], part[:, 1])
        if on_host:
            scores, part = scores.cpu(), part.cpu()
        scores = remove(scores, part)
        right = scores.gather(1, part[:, 2:])
        ranks.append((scores > right).sum(1) + 1)
    return torch.cat(ranks)


def summary(ranks):
    ranks = ranks.float()
    found = {'mrr': (1 / ranks).mean()}
    for k in (1, 3, 10):
        found[f'hits@{k}'] = (ranks <= k).float().mean()
    return {name: round(value.item(), 3) for name, value in found.items()}
