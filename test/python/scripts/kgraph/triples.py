"""A made-up graph of people, cities and countries."""
from collections import defaultdict

import numpy as np
import torch
from torch.utils.data import Dataset

RELATIONS = ['lives_in', 'works_in', 'part_of', 'knows']


class Graph:
    def __init__(self, people=24, cities=8, countries=3, seed=0):
        rng = np.random.default_rng(seed)
        self.kinds = {'person': range(people), 'city': range(people, people + cities),
                      'country': range(people + cities, people + cities + countries)}
        self.entities = people + cities + countries
        rows = [(c, 2, people + cities + c % countries) for c in self.kinds['city']]
        for p in self.kinds['person']:
            home = people + p % cities
            rows += [(p, 0, home), (p, 1, home if rng.random() < 0.7 else people + rng.integers(cities))]
            rows += [(p, 3, q) for q in self.kinds['person'] if q != p and q % cities == p % cities]
        rows = rng.permutation(np.array(rows))
        cut = int(0.85 * len(rows))
        self.train, self.test = torch.as_tensor(rows[:cut]), torch.as_tensor(rows[cut:])
        self.tails = defaultdict(set)
        for h, r, t in rows.tolist():
            self.tails[h, r].add(t)

    def tail_kind(self, relation):
        return ('city', 'city', 'country', 'person')[relation]


class Triples(Dataset):
    """Triples, with weights that make little of what is frequent."""

    def __init__(self, triples):
        self.triples = triples
        pairs, which, counts = np.unique(triples[:, :2].numpy(), axis=0, return_inverse=True, return_counts=True)
        self.weights = torch.from_numpy(1 / np.sqrt(counts[which.reshape(-1)])).float()

    def __len__(self):
        return len(self.triples)

    def __getitem__(self, i):
        return self.triples[i], self.weights[i]
