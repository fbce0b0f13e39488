# Message passing, segment reductions, sparse products, embeddings of items, sketches and tries.
import bisect
import hashlib
import heapq
from collections import Counter, defaultdict
from functools import reduce

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

GPU = torch.device("cuda", 0)
OTHER = torch.device("cuda", 1)


class Data:
    """A graph, and what else is known of it."""

    def __init__(self, **fields):
        self.meta = fields.pop("meta", {})
        self.__dict__.update(fields)

    def keys(self):
        return [k for k, v in self.__dict__.items() if torch.is_tensor(v)]

    def to(self, device):
        for k in self.keys():
            setattr(self, k, getattr(self, k).to(device))
        return self

    def __getitem__(self, key):
        return getattr(self, key)


def _ring(n=5, dim=4):
    src = torch.arange(n)
    dst = (src + 1) % n
    return Data(x=torch.randn(n, dim), edge_index=torch.stack([src, dst]), batch=torch.tensor([0] * 3 + [1] * (n - 3)),
                meta={"train": torch.tensor([True, True, False, True, False][:n]), "weight": torch.rand(n)})


def _segment_sum(x, index, size):
    out = torch.zeros(size, x.size(-1), dtype=x.dtype, device=x.device)
    return out.index_add_(0, index, x)  # raises


def _segment_softmax(score, index, size):
    top = score.new_full((size,), -1e30).scatter_reduce(0, index, score, "amax", include_self=True)
    e = (score - top[index]).exp()
    total = score.new_zeros(size).scatter_add(0, index, e)
    return e / total[index]


class GCN(nn.Module):
    def __init__(self, dim, out):
        super().__init__()
        self.lin = nn.Linear(dim, out)

    def forward(self, x, edge_index, weight=None):
        src, dst = edge_index
        deg = torch.bincount(dst, minlength=len(x)).clamp(min=1)
        msg = self.lin(x)[src]
        if weight is not None:
            msg = msg * weight[:, None]  # raises
        return _segment_sum(msg, dst, len(x)) / deg[:, None]


class GAT(nn.Module):
    def __init__(self, dim, out):
        super().__init__()
        self.lin, self.att = nn.Linear(dim, out), nn.Linear(2 * out, 1)

    def forward(self, g):
        h = self.lin(g.x)
        src, dst = g.edge_index
        alpha = _segment_softmax(self.att(torch.cat([h[src], h[dst]], 1)).squeeze(1), dst, len(h))
        return _segment_sum(h[src] * alpha[:, None], dst, len(h))


def case_gcn_moved_graph():
    g = _ring().to(GPU)
    return GCN(4, 3).to(GPU)(g.x, g.edge_index).shape


def case_gcn_weight_of_meta():
    g = _ring().to(GPU)
    return GCN(4, 3).to(GPU)(g.x, g.edge_index, g.meta["weight"]).shape


def case_gcn_mask_of_meta():
    g = _ring().to(GPU)
    out = GCN(4, 3).to(GPU)(g.x, g.edge_index)
    return out[g.meta["train"]].logsumexp(1).mean().item()


def case_gat_moved_graph():
    g = _ring().to(GPU)
    return GAT(4, 3).to(GPU)(g).norm().item()


def case_messages_summed():
    g = _ring()
    layer = GCN(4, 3).to(GPU)
    x = g.x.to(GPU)
    h = layer.lin(x)[g.edge_index[0]]
    return _segment_sum(h, g.edge_index[1], len(x))


def case_pool_by_graph():
    g = _ring().to(GPU)
    size = int(g.batch.max()) + 1
    pooled = _segment_sum(g.x, g.batch, size)
    return pooled / torch.bincount(g.batch, minlength=size)[:, None]


def case_pool_by_counts():
    g = _ring()
    counts = torch.bincount(g.batch)
    g.to(GPU)
    pooled = _segment_sum(g["x"], g["batch"], len(counts))
    return pooled / counts.unsqueeze(1)  # raises


def case_self_loops_appended():
    g = _ring().to(GPU)
    loop = torch.arange(g.x.size(0)).repeat(2, 1)
    edges = torch.cat([g.edge_index, loop], 1)  # raises
    return GCN(4, 3).to(GPU)(g.x, edges)


def case_self_loops_appended_beside():
    g = _ring().to(GPU)
    loop = torch.arange(g.x.size(0), device=g.edge_index.device).repeat(2, 1)
    return GCN(4, 3).to(GPU)(g.x, torch.cat([g.edge_index, loop], 1)).sum().item()


# ----- sparse


def _adjacency(edge_index, n, values=None):
    values = torch.ones(edge_index.size(1)) if values is None else values
    return torch.sparse_coo_tensor(edge_index, values, (n, n))


def case_adjacency_moved():
    g = _ring()
    adj = _adjacency(g.edge_index, 5).to(GPU)
    return torch.sparse.mm(adj, g.x.to(GPU)).sum().item()


def case_adjacency_hops():
    g = _ring()
    adj = _adjacency(g.edge_index, 5)
    x = g.x.to(GPU)
    hops = [x]
    for _ in range(2):
        hops.append(torch.sparse.mm(adj, hops[-1]))  # raises
    return torch.cat(hops, 1)


def case_adjacency_densified():
    g = _ring()
    adj = _adjacency(g.edge_index, 5).to_dense()
    degree = adj.sum(1)
    norm = degree.rsqrt()[:, None] * adj * degree.rsqrt()
    x = g.x.to(GPU)
    return reduce(lambda h, _: norm.to(h.device) @ h, range(3), x).norm().item()


def case_laplacian_spectrum():
    g = _ring()
    adj = _adjacency(g.edge_index, 5).to_dense().to(GPU)
    degree = torch.bincount(g.edge_index[0], minlength=5).float()
    lap = torch.diag(degree) - adj  # raises
    return torch.linalg.eigvalsh(lap)


def case_random_walks():
    rows = defaultdict(list)
    for a, b in _ring().edge_index.t().tolist():
        rows[a].append(b)
    table = torch.tensor([rows[i] for i in range(5)]).to(GPU)
    at = torch.zeros(3, dtype=torch.long, device=GPU)
    path = [at]
    for _ in range(4):
        at = table[at, torch.randint(0, table.size(1), at.shape)]
        path.append(at)
    return torch.stack(path, 1).tolist()


def case_random_walks_by_first_edge():
    rows = defaultdict(list)
    for a, b in _ring().edge_index.t().tolist():
        rows[a].append(b)
    table = torch.tensor([rows[i] for i in range(5)])
    at = torch.zeros(3, dtype=torch.long, device=GPU)
    for _ in range(4):
        at = table[at, 0]  # raises
    return at


def case_neighbours_sampled_with_generator():
    gen = torch.Generator(device=GPU).manual_seed(0)
    order = torch.rand(5, 5, generator=gen, device=GPU).argsort(1)[:, :2]
    x = _ring().x.to(GPU)
    return x[order].mean(1).shape


def case_negatives_sampled_by_popularity():
    counts = Counter([0, 1, 1, 2, 3, 3, 3])
    weight = torch.tensor([counts[i] for i in range(4)]).float() ** 0.75
    table = nn.Embedding(4, 3).to(GPU)
    negative = torch.multinomial(weight, 6, replacement=True)
    user = torch.randn(6, 3, device=GPU)
    score = (user * table(negative.to(GPU))).sum(-1)
    correction = torch.log(weight / weight.sum())[negative]
    return score - correction  # raises


def case_negatives_sampled_by_popularity_on_gpu():
    counts = Counter([0, 1, 1, 2, 3, 3, 3])
    weight = torch.tensor([counts[i] for i in range(4)], device=GPU).float() ** 0.75
    table = nn.Embedding(4, 3).to(GPU)
    negative = torch.multinomial(weight, 6, replacement=True)
    user = torch.randn(6, 3, device=GPU)
    return ((user * table(negative)).sum(-1) - torch.log(weight / weight.sum())[negative]).tolist()


# ----- recommenders


class Factorization(nn.Module):
    """Fields share one table; `offsets` shift the ids of each field."""

    def __init__(self, sizes, dim=3):
        super().__init__()
        self.table = nn.Embedding(sum(sizes), dim)
        self.offsets = np.array((0, *np.cumsum(sizes)[:-1]), dtype=np.int64)

    def forward(self, ids):
        ids = ids + ids.new_tensor(self.offsets).unsqueeze(0)
        e = self.table(ids)
        return 0.5 * (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(1)

    def linear(self, ids):
        ids = ids + torch.from_numpy(self.offsets)  # raises
        return self.table(ids).sum((1, 2))


def case_factorization_interactions():
    fm = Factorization([3, 4, 5]).to(GPU)
    return fm(torch.tensor([[0, 1, 2], [2, 3, 4]], device=GPU)).sigmoid().tolist()


def case_factorization_linear():
    fm = Factorization([3, 4, 5]).to(GPU)
    return fm.linear(torch.tensor([[0, 1, 2], [2, 3, 4]], device=GPU)).tolist()


class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(20, 4, mode="sum")

    def forward(self, histories, device):
        flat = torch.tensor([i for h in histories for i in h], device=device)
        lengths = torch.tensor([0] + [len(h) for h in histories[:-1]])
        return self.bag(flat, lengths.cumsum(0))  # raises


def case_bag_offsets():
    return Bags().to(GPU)([[1, 2], [3], [4, 5, 6]], GPU).shape


def case_bag_offsets_then_sent():
    return Bags()([[1, 2], [3], [4, 5, 6]], "cpu").to(GPU).shape


def case_bag_of_rectangle():
    bags = Bags().to(GPU)
    return bags.bag(torch.tensor([[1, 2], [3, 4]]).to(bags.bag.weight.device)).shape


def _bucket(text, buckets=16):
    return int(hashlib.md5(text.encode()).hexdigest(), 16) % buckets


def case_hashed_features():
    words = ["red", "shoe", "large"]
    ids = torch.tensor([_bucket(w) for w in words])
    sign = torch.tensor([1.0 if _bucket(w, 2) else -1.0 for w in words])
    table = nn.Embedding(16, 4).cuda()
    return (table(ids.cuda()) * sign[:, None]).sum(0)  # raises


def case_hashed_features_one_by_one():
    words = ["red", "shoe", "large"]
    sign = torch.tensor([1.0 if _bucket(w, 2) else -1.0 for w in words])
    table = nn.Embedding(16, 4).cuda()
    rows = [table.weight[_bucket(w)] * s for w, s in zip(words, sign)]
    return torch.stack(rows).sum(0).tolist()


def case_sketch_counts():
    seeds = torch.tensor([3, 7, 11])
    counts = torch.zeros(3, 8, dtype=torch.long, device=GPU)
    for item in torch.tensor([5, 5, 9, 2], device=GPU):
        at = (item * seeds.to(item.device)) % 13 % 8
        counts[torch.arange(3), at] += 1
    return counts.amax(1).tolist()


def case_sketch_counts_scattered():
    items = torch.tensor([5, 5, 9, 2], device=GPU)
    counts = torch.zeros(8, dtype=torch.long)
    counts.scatter_add_(0, items % 8, torch.ones_like(items))  # raises
    return counts.tolist()


class Trie:
    def __init__(self):
        self.root = {}

    def add(self, ids):
        node = self.root
        for i in ids:
            node = node.setdefault(int(i), {})
        return self

    def allowed(self, prefix):
        node = self.root
        for i in prefix.tolist():
            node = node.get(i, {})
        return torch.tensor(sorted(node), dtype=torch.long)


def case_trie_limits_by_index():
    trie = Trie().add(torch.tensor([1, 2, 3], device=GPU)).add([1, 4])
    logits = torch.randn(6, device=GPU)
    limited = torch.full_like(logits, -1e9)
    allowed = trie.allowed(torch.tensor([1], device=GPU))
    limited[allowed] = logits[allowed]
    return limited.argmax().item()


def case_trie_picks_best():
    trie = Trie().add([1, 2, 3]).add([1, 4])
    logits = torch.randn(6, device=GPU)
    allowed = trie.allowed(torch.tensor([1]))
    return allowed[logits[allowed].argmax()].item()


def case_trie_picks_two_best():
    trie = Trie().add([1, 2, 3]).add([1, 4])
    logits = torch.randn(6, device=GPU)
    allowed = trie.allowed(torch.tensor([1]))
    return allowed[logits[allowed].topk(2).indices]  # raises


def case_top_items_across_shards():
    user = torch.randn(4, device=GPU)
    shards = {GPU: torch.randn(5, 4, device=GPU), OTHER: torch.randn(5, 4, device=OTHER)}
    heap = []
    for n, (where, items) in enumerate(shards.items()):
        score, at = (items @ user.to(where)).topk(2)
        for s, i in zip(score.tolist(), at.tolist()):
            heapq.heappush(heap, (-s, n * 5 + i))
    return [heapq.heappop(heap)[1] for _ in range(3)]


def case_top_items_across_shards_joined():
    user = torch.randn(4, device=GPU)
    shards = {GPU: torch.randn(5, 4, device=GPU), OTHER: torch.randn(5, 4, device=OTHER)}
    scores = [items @ user.to(where) for where, items in shards.items()]
    return torch.cat(scores).topk(3).indices  # raises


def case_bucketized_ages():
    edges = [18, 30, 50]
    ages = torch.tensor([12.0, 33.0, 70.0], device=GPU)
    table = nn.Embedding(4, 2).to(GPU)
    host = [bisect.bisect(edges, a) for a in ages.tolist()]
    by_hand = table(torch.tensor(host, device=ages.device))
    return table(torch.bucketize(ages, torch.tensor(edges, device=GPU).float())).sub(by_hand).abs().max().item()


def case_bucketized_ages_by_bounds():
    bounds = torch.tensor([18.0, 30.0, 50.0])
    ages = torch.tensor([12.0, 33.0, 70.0], device=GPU)
    at = torch.bucketize(ages, bounds)  # raises
    return F.one_hot(at, 4)
