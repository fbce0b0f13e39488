import torch
import torch.nn as nn


class Scorer(nn.Module):
    def __init__(self, entities, relations, dim):
        super().__init__()
        self.entity = nn.Embedding(entities, dim)
        self.relation = nn.Embedding(relations, dim)
        for e in (self.entity, self.relation):
            nn.init.uniform_(e.weight, -0.5, 0.5)

    def candidates(self, tails):
        return self.entity.weight[None] if tails is None else self.entity(tails)

    def forward(self, heads, relations, tails=None):
        """Scores (n, k) of tails (n, k), or of all entities."""
        raise NotImplementedError


class TransE(Scorer):
    def __init__(self, entities, relations, dim, margin=4.0):
        super().__init__(entities, relations, dim)
        self.margin = torch.tensor(margin)

    def forward(self, heads, relations, tails=None):
        goal = self.entity(heads) + self.relation(relations)
        return self.margin - (goal[:, None] - self.candidates(tails)).norm(p=1, dim=-1)


class RotatE(Scorer):
    def __init__(self, entities, relations, dim, margin=4.0):
        super().__init__(entities, relations, dim)
        self.relation = nn.Embedding(relations, dim // 2)
        self.margin = margin

    def forward(self, heads, relations, tails=None):
        re, im = self.entity(heads).chunk(2, -1)
        phase = self.relation(relations) * 3.14159
        c, s = phase.cos(), phase.sin()
        goal = torch.cat([re * c - im * s, re * s + im * c], -1)
        return self.margin - (goal[:, None] - self.candidates(tails)).norm(dim=-1)


class Projected(Scorer):
    """TransE in a space of each relation."""

    def __init__(self, entities, relations, dim, margin=4.0):
        super().__init__(entities, relations, dim)
        self.margin = margin
        self.projections = [nn.Linear(dim, dim, bias=False) for _ in range(relations)]
        for p in self.projections:
            nn.init.eye_(p.weight)

    def forward(self, heads, relations, tails=None):
        h, t = self.entity(heads), self.candidates(tails).expand(len(heads), -1, -1)
        scores = t.new_empty(t.shape[:2])
        for r, project in enumerate(self.projections):
            rows = (relations == r).nonzero().squeeze(1)
            if len(rows):
                goal = project(h[rows]) + self.relation.weight[r]  # raises
                scores[rows] = self.margin - (goal[:, None] - project(t[rows])).norm(p=1, dim=-1)
        return scores


SCORERS = {'transe': TransE, 'rotate': RotatE, 'projected': Projected}
