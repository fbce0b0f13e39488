"""Recommendation and learning on graphs: interactions, samplers, message passing, ranking metrics."""
from collections import defaultdict
from dataclasses import dataclass
from typing import List

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

USERS, ITEMS, DIM = 6, 9, 4

class Data:
    def __init__(self, **items):
        self.__dict__.update(items)

    def apply(self, fn, *keys):
        for key in keys or list(self.__dict__):
            value = self.__dict__[key]
            if torch.is_tensor(value):
                self.__dict__[key] = fn(value)
            elif isinstance(value, Data):
                value.apply(fn)
        return self

    def to(self, device, *keys):
        return self.apply(lambda value: value.to(device), *keys)

    @property
    def num_nodes(self):
        return self.x.shape[0]

def ring(nodes=5, device=None, **extra):
    source = torch.arange(nodes)
    edges = torch.stack([source, (source + 1) % nodes])
    data = Data(x=torch.randn(nodes, DIM), edge_index=torch.cat([edges, edges.flip(0)], 1), **extra)
    return data.to(device) if device else data

def degree(index, size):
    return torch.zeros(size, device=index.device).scatter_add_(0, index, torch.ones_like(index, dtype=torch.float32))

class MessagePassing(nn.Module):
    aggregation = "sum"

    def message(self, source, target, weight):
        return source if weight is None else source * weight[:, None]

    def update(self, gathered, x):
        return gathered

    def propagate(self, edge_index, x, weight=None):
        i, j = edge_index
        messages = self.message(x.index_select(0, i), x.index_select(0, j), weight)  # raises
        gathered = x.new_zeros(x.shape[0], messages.shape[-1]).index_add(0, j, messages)
        if self.aggregation == "mean":
            gathered = gathered / degree(j, x.shape[0]).clamp(min=1)[:, None]
        return self.update(gathered, x)

class GCNConv(MessagePassing):
    def __init__(self, cached=False):
        super().__init__()
        self.linear, self.cached, self.norm = nn.Linear(DIM, DIM), cached, None

    def edge_weights(self, edge_index, nodes):
        if self.norm is not None and self.cached:
            return self.norm
        scale = degree(edge_index[1], nodes).clamp(min=1).rsqrt()
        self.norm = scale[edge_index[0]] * scale[edge_index[1]]
        return self.norm

    def message(self, source, target, weight):
        return source * weight.unsqueeze(-1)  # raises

    def forward(self, x, edge_index):
        return self.propagate(edge_index, self.linear(x), self.edge_weights(edge_index, x.shape[0]))

class SageConv(MessagePassing):
    aggregation = "mean"

    def __init__(self):
        super().__init__()
        self.near, self.own = nn.Linear(DIM, DIM), nn.Linear(DIM, DIM)

    def update(self, gathered, x):
        return F.relu(self.near(gathered) + self.own(x))

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x)

class EdgeTypeConv(MessagePassing):
    def __init__(self, relations=3):
        super().__init__()
        self.scales = {r: nn.Parameter(torch.ones(DIM) * (r + 1)) for r in range(relations)}

    def forward(self, x, edge_index, edge_type):
        out = x
        for relation, scale in self.scales.items():
            part = self.propagate(edge_index[:, edge_type == relation], x)
            out = out + part * scale  # raises
        return out

class NodeClassifier(nn.Module):
    CONVS = {"gcn": GCNConv, "sage": SageConv}

    def __init__(self, conv="gcn", classes=3, weights=None, **options):
        super().__init__()
        self.convs = nn.ModuleList(self.CONVS[conv](**options) for _ in range(2))
        self.head = nn.Linear(DIM, classes)
        self.weights = weights

    def forward(self, data):
        x = data.x
        for conv in self.convs:
            x = conv(x, data.edge_index)
        return self.head(x)

    def loss(self, data):
        logits = self(data)
        return F.cross_entropy(logits[data.mask], data.y[data.mask], weight=self.weights)  # raises

class NeighborSampler:
    def __init__(self, data, fanout=2):
        self.data, self.fanout = data, fanout
        self.rows = defaultdict(list)
        for i, j in data.edge_index.t().tolist():
            self.rows[j].append(i)

    def sample(self, seeds):
        nodes, pairs = list(seeds), []
        for seed in seeds:
            for other in self.rows[seed][:self.fanout]:
                if other not in nodes:
                    nodes.append(other)
                pairs.append((nodes.index(other), nodes.index(seed)))
        return torch.tensor(nodes), torch.tensor(pairs).t().contiguous()

    def batch(self, seeds):
        nodes, edge_index = self.sample(seeds)
        return Data(x=self.data.x[nodes], edge_index=edge_index, y=self.data.y[nodes],
                    mask=torch.arange(len(nodes)) < len(seeds))

def global_mean_pool(x, batch, size=None):
    size = int(batch.max()) + 1 if size is None else size
    total = torch.zeros(size, x.shape[1], dtype=x.dtype, device=x.device)
    total.scatter_add_(0, batch[:, None].expand_as(x), x)  # raises
    return total / degree(batch, size).clamp(min=1)[:, None]

def collate_graphs(graphs):
    offset, edges, batch = 0, [], []
    for number, graph in enumerate(graphs):
        edges.append(graph.edge_index + offset)
        batch.append(torch.full((graph.num_nodes,), number))
        offset += graph.num_nodes
    return Data(x=torch.cat([g.x for g in graphs]), edge_index=torch.cat(edges, 1), batch=torch.cat(batch))

@dataclass
class Interactions:
    users: np.ndarray
    items: np.ndarray
    @classmethod
    def random(cls, count=20, seed=0):
        rng = np.random.RandomState(seed)
        return cls(rng.randint(USERS, size=count), rng.randint(ITEMS, size=count))

    def positives(self):
        seen = defaultdict(set)
        for u, i in zip(self.users, self.items):
            seen[int(u)].add(int(i))
        return seen

    def popularity(self):
        return torch.bincount(torch.from_numpy(self.items), minlength=ITEMS).float()

    def dense(self):
        made = torch.zeros(USERS, ITEMS)
        made[self.users, self.items] = 1.0
        return made

class NegativeSampler:
    def __init__(self, interactions, device="cpu"):
        self.seen, self.device = interactions.positives(), device

    def propose(self, users, count):
        return torch.randint(ITEMS, (len(users), count))

    def __call__(self, users, count=2):
        drawn = self.propose(users, count)
        for row, user in zip(drawn, users.tolist()):
            for at, item in enumerate(row.tolist()):
                if item in self.seen[user]:
                    row[at] = (item + 1) % ITEMS
        return drawn.to(self.device)

class PopularitySampler(NegativeSampler):
    def __init__(self, interactions, device="cpu", power=0.75):
        super().__init__(interactions, device)
        self.weights = (interactions.popularity() + 1) ** power

    def propose(self, users, count):
        return torch.multinomial(self.weights.expand(len(users), -1), count)

    def correction(self, items):
        return torch.log(self.weights.to(items.device)[items] / self.weights.sum())

class UnseenMaskSampler(NegativeSampler):
    def __init__(self, interactions, device="cpu"):
        super().__init__(interactions, device)
        self.free = 1.0 - interactions.dense()

    def propose(self, users, count):
        return torch.multinomial(self.free[users] + 1e-6, count)  # raises

class Factorization(nn.Module):
    def __init__(self):
        super().__init__()
        self.users, self.items = nn.Embedding(USERS, DIM), nn.Embedding(ITEMS, DIM)
        self.bias = nn.Parameter(torch.zeros(ITEMS))
        self.mean = torch.tensor(3.5)

    @property
    def device(self):
        return self.bias.device

    def score(self, users, items):
        return (self.users(users)[:, None] * self.items(items)).sum(-1) + self.bias[items] + self.mean  # raises

    def full_scores(self, users):
        return self.users(users.to(self.device)) @ self.items.weight.t() + self.bias

class LightGCN(Factorization):
    def __init__(self, interactions, layers=2):
        super().__init__()
        both = torch.cat([interactions.dense(), interactions.dense()], 1)
        self.layers = layers
        self.register_buffer("graph", (both / both.sum(1, keepdim=True).clamp(min=1))[:, :ITEMS])
        self.blend = torch.full((layers + 1,), 1.0 / (layers + 1))

    def item_table(self):
        outs = [self.items.weight]
        for _ in range(self.layers):
            outs.append(self.graph.t() @ (self.graph @ outs[-1]))
        return sum(w * out for w, out in zip(self.blend, outs))

    def stacked_table(self):
        outs = torch.stack([self.item_table(), self.items.weight, self.items.weight])
        return torch.einsum("k,kid->id", self.blend, outs)  # raises

    def full_scores(self, users):
        return self.users(users.to(self.device)) @ self.item_table().t()

class BPRTrainer:
    def __init__(self, model, sampler, interactions, rate=0.1):
        self.model, self.sampler, self.data = model, sampler, interactions
        self.optimizer = torch.optim.Adagrad(model.parameters(), lr=rate)

    def epoch(self, size=10, log_q=False):
        total = 0.0
        for start in range(0, len(self.data.users), size):
            users = torch.from_numpy(self.data.users[start:start + size])
            good = torch.from_numpy(self.data.items[start:start + size])[:, None]
            bad = self.sampler(users)
            users, good = users.to(self.model.device), good.to(self.model.device)
            loss = -F.logsigmoid(self.model.score(users, good) - self.model.score(users, bad)).mean()
            if log_q:
                loss = loss - 0.01 * self.sampler.correction(bad).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.detach()
        return float(total)

class RankingMetrics:
    def __init__(self, k=3):
        self.k, self.discount = k, 1.0 / torch.log2(torch.arange(k).float() + 2)
        self.hits: List[torch.Tensor] = []

    def gains(self, hit):
        return (hit * self.discount).sum(-1) / self.discount.sum()  # raises

    def update(self, scores, truth, gains=False):
        top = scores.topk(self.k, -1).indices
        hit = truth.to(top.device).gather(1, top)
        self.hits.append(self.gains(hit) if gains else hit.mean(-1))

    def compute(self):
        return torch.cat(self.hits).mean().item()  # raises

class Evaluator:
    def __init__(self, model, interactions, mask_seen=True):
        self.model, self.data, self.mask_seen = model, interactions, mask_seen

    @torch.no_grad()
    def scores(self, users):
        scores = self.model.full_scores(users)
        if self.mask_seen:
            scores[self.data.dense()[users].bool()] = -1e9
        return scores

    def run(self, metrics, **options):
        for users in torch.arange(USERS).split(4):
            metrics.update(self.scores(users), self.data.dense()[users], **options)
        return metrics.compute()

    def auc(self, user):
        scores = self.scores(torch.tensor([user]))[0]
        order = np.argsort(-scores)  # raises
        return order[:3]

def labelled_ring(device=None):
    return ring(5, device, y=torch.tensor([0, 1, 2, 0, 1]), mask=torch.tensor([True, True, False, True, False]))

def recommender(model=None, device="cuda:0", sampler=NegativeSampler, sampler_device=None):
    data = Interactions.random()
    return BPRTrainer((model or Factorization()).to(device), sampler(data, sampler_device or device), data)

def case_classify():
    NodeClassifier().cuda().loss(labelled_ring("cuda")).backward()

def case_classify_class_weights():
    NodeClassifier(weights=torch.tensor([1.0, 2.0, 1.0])).loss(labelled_ring()).backward()
    NodeClassifier(weights=torch.tensor([1.0, 2.0, 1.0])).cuda().loss(labelled_ring("cuda"))

def case_partial_move():
    data = labelled_ring().to("cuda:0", "x", "y")
    model = NodeClassifier("sage").to("cuda:0")
    model.loss(Data(**{**data.__dict__, "edge_index": data.edge_index.cuda()}))
    model.loss(data)

def case_cached_norm():
    data = labelled_ring()
    model = NodeClassifier(cached=True)
    model(data)
    model.cuda()(data.to("cuda:0"))

def case_uncached_norm():
    model = NodeClassifier()
    for device in ("cpu", "cuda:0", "cuda:1"):
        model.to(device)(labelled_ring(device))

def case_neighbor_batches():
    sampler = NeighborSampler(labelled_ring("cuda:0"))
    model = NodeClassifier("sage").cuda()
    model.loss(sampler.batch([0, 2]).to("cuda:0", "edge_index"))

def case_relations():
    EdgeTypeConv()(ring().x, ring().edge_index, torch.arange(10) % 3)
    data = ring(device="cuda:0")
    EdgeTypeConv().cuda()(data.x, data.edge_index, torch.arange(10) % 3)

def case_pooled():
    data = collate_graphs([ring(3), ring(4)]).to("cuda:0")
    global_mean_pool(data.x, data.batch)

def case_pooled_collated_on_gpu():
    data = collate_graphs([ring(3, "cuda:0"), ring(4, "cuda:0")])
    global_mean_pool(SageConv().cuda()(data.x, data.edge_index), data.batch, size=2)

def case_bpr():
    trainer = recommender()
    trainer.epoch()
    Evaluator(trainer.model, trainer.data).run(RankingMetrics())

def case_bpr_popular():
    recommender(sampler=PopularitySampler).epoch(log_q=True)

def case_bpr_negatives_on_host():
    recommender(device="cpu").epoch()
    recommender(sampler_device="cpu").epoch()

def case_mask_sampler():
    trainer = recommender(sampler=UnseenMaskSampler)
    trainer.epoch()
    trainer.sampler(torch.arange(3, device="cuda:0").cpu())
    trainer.sampler(torch.arange(3, device="cuda:0"))

def case_lightgcn():
    trainer = recommender(LightGCN(Interactions.random()))
    trainer.epoch()
    Evaluator(trainer.model, trainer.data).run(RankingMetrics())

def case_lightgcn_stacked():
    model = LightGCN(Interactions.random())
    model.stacked_table()
    model.cuda().stacked_table()

def case_ndcg():
    trainer = recommender(device="cpu")
    Evaluator(trainer.model, trainer.data).run(RankingMetrics(), gains=True)
    Evaluator(trainer.model.cuda(), trainer.data).run(RankingMetrics(), gains=True)

def case_metrics_of_two_models():
    metrics, data = RankingMetrics(), Interactions.random()
    for device in ("cuda:0", "cuda:1"):
        metrics.update(Factorization().to(device).full_scores(torch.arange(3)).detach(), data.dense()[:3])
    metrics.compute()

def case_order_of_items():
    trainer = recommender()
    Evaluator(trainer.model.cpu(), trainer.data, mask_seen=False).auc(1)
    Evaluator(trainer.model.to("cuda:0"), trainer.data).auc(1)
