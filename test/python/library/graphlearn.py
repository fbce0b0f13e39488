"""Graph containers, loaders, samplers, pooling operators and node memories."""
import copy
from typing import List, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def scatter(src, index, dim_size=None, reduce="sum"):
    dim_size = int(index.max()) + 1 if dim_size is None else dim_size
    out = src.new_zeros(dim_size, *src.shape[1:]).index_add_(0, index, src)
    if reduce == "mean":
        count = torch.bincount(index, minlength=dim_size).clamp(min=1)
        out = out / count.view(-1, *[1] * (src.dim() - 1))
    return out


def scatter_max(src, index, dim_size):
    out = torch.full((dim_size, src.size(1)), float("-inf"))
    return out.scatter_reduce(0, index.unsqueeze(1).expand_as(src), src, reduce="amax")  # raises


def segment_softmax(src, index, num_segments):
    exp = (src - src.max()).exp()
    return exp / (scatter(exp, index, num_segments)[index] + 1e-16)


class Data:
    """Attributes of a graph; tensors move together."""

    def __init__(self, x=None, edge_index=None, **kwargs):
        self.__dict__.update(x=x, edge_index=edge_index, **kwargs)

    @property
    def num_nodes(self):
        return self.x.size(0)

    def apply(self, func):
        for key, value in self.__dict__.items():
            if torch.is_tensor(value):
                setattr(self, key, func(value))
        return self

    def to(self, device):
        return self.apply(lambda t: t.to(device, non_blocking=True))


class Batch(Data):
    @classmethod
    def from_data_list(cls, graphs: List[Data]):
        sizes = torch.tensor([0] + [g.num_nodes for g in graphs])
        ptr = sizes.cumsum(0)
        batch = cls(x=torch.cat([g.x for g in graphs]),
                    edge_index=torch.cat([g.edge_index + offset for g, offset in zip(graphs, ptr)], dim=1),
                    batch=torch.arange(len(graphs)).repeat_interleave(sizes[1:]))
        batch.slices = {"ptr": ptr}
        return batch

    def get(self, i):
        begin, end = self.slices["ptr"][i], self.slices["ptr"][i + 1]
        keep = (self.batch == i)[self.edge_index[0]]
        return Data(self.x[begin:end], self.edge_index[:, keep] - begin)

    def local_index(self):
        """Position of each node within its own graph."""
        nodes = torch.arange(self.num_nodes, device=self.batch.device)
        return nodes - self.slices["ptr"][self.batch]  # raises


class NeighborSampler:
    """Samples neighbours from CSR arrays; they stay where the graph was loaded."""

    def __init__(self, edge_index, num_nodes, size=2):
        row, order = edge_index[0].cpu().sort()
        self.col = edge_index[1].cpu()[order]
        self.rowptr = torch.cat([torch.zeros(1, dtype=torch.long), torch.bincount(row, minlength=num_nodes).cumsum(0)])
        self.size, self.num_nodes = size, num_nodes

    def sample(self, seeds):
        seeds = seeds.cpu()
        begin, degree = self.rowptr[seeds], self.rowptr[seeds + 1] - self.rowptr[seeds]
        offset = (torch.rand(len(seeds), self.size) * degree.unsqueeze(1)).long()
        return self.col[(begin.unsqueeze(1) + offset).clamp(max=len(self.col) - 1)]

    def gather(self, x, seeds):
        return x[self.sample(seeds)].mean(dim=1)

    def induced(self, x, edge_index, seeds):
        """Subgraph of the seeds and the nodes sampled around them."""
        n_id = torch.cat([seeds.cpu(), self.sample(seeds).flatten()]).unique()
        mask = torch.zeros(self.num_nodes, dtype=torch.bool)
        mask[n_id] = True
        keep = mask.to(edge_index.device)[edge_index].all(dim=0)
        return Data(x.index_select(0, n_id), edge_index[:, keep])  # raises


def negative_sampling(edge_index, num_nodes, num_neg):
    """Pairs of nodes that are no edges; rejection works on encoded pairs in NumPy (PyG)."""
    idx = (edge_index[0] * num_nodes + edge_index[1]).to("cpu")
    perm = torch.randperm(num_nodes * num_nodes)
    perm = perm[torch.from_numpy(~np.isin(perm.numpy(), idx.numpy()))][:num_neg].to(edge_index.device)
    return torch.stack([torch.div(perm, num_nodes, rounding_mode="floor"), perm % num_nodes])


class Node2Vec(nn.Module):
    def __init__(self, num_nodes, dim=8, num_neg=3):
        super().__init__()
        self.num_nodes, self.num_neg = num_nodes, num_neg
        self.embedding = nn.Embedding(num_nodes, dim)

    def pos_loss(self, pairs):
        dot = (self.embedding(pairs[0]) * self.embedding(pairs[1])).sum(-1)
        return F.softplus(-dot).mean()

    def neg_loss(self, pairs):
        start = pairs[0].repeat(self.num_neg)
        other = torch.randint(self.num_nodes, (start.numel(),), dtype=torch.long)
        return F.softplus((self.embedding(start) * self.embedding(other)).sum(-1)).mean()  # raises


class GCNConv(nn.Module):
    def __init__(self, in_dim, out_dim, cached=False):
        super().__init__()
        self.lin, self.cached = nn.Linear(in_dim, out_dim, bias=False), cached
        self.bias = nn.Parameter(torch.zeros(out_dim))
        self._cache: Optional[tuple] = None

    @staticmethod
    def norm(edge_index, num_nodes):
        loops = torch.arange(num_nodes, device=edge_index.device).expand(2, -1)
        edge_index = torch.cat([edge_index, loops], dim=1)
        deg = torch.bincount(edge_index[1], minlength=num_nodes).float().pow(-0.5)
        return edge_index, deg[edge_index[0]] * deg[edge_index[1]]

    def forward(self, x, edge_index):
        if self._cache is None or not self.cached:
            self._cache = self.norm(edge_index, x.size(0))
        edge_index, weight = self._cache
        messages = self.lin(x)[edge_index[0]] * weight.unsqueeze(1)
        return scatter(messages, edge_index[1], x.size(0)) + self.bias


def to_sparse(edge_index, num_nodes, edge_weight=None):
    value = torch.ones(edge_index.size(1)) if edge_weight is None else edge_weight
    return torch.sparse_coo_tensor(edge_index, value, (num_nodes, num_nodes))  # raises


def laplacian_pe(data, k=2):
    """Eigenvectors of the normalized Laplacian, with random signs, as further features."""
    adj = torch.zeros(data.num_nodes, data.num_nodes, device=data.x.device)
    adj[data.edge_index[0], data.edge_index[1]] = 1.0
    deg = adj.sum(1).clamp(min=1).rsqrt()
    lap = torch.eye(data.num_nodes).type_as(adj) - deg.unsqueeze(1) * adj * deg
    _, vectors = np.linalg.eigh(lap.cpu().numpy())
    pe = torch.from_numpy(vectors[:, 1:k + 1]).float()
    pe = pe * (torch.randint(0, 2, (k,)) * 2 - 1)
    data.x = torch.cat([data.x, pe], dim=-1)  # raises
    return data


class TopKPooling(nn.Module):
    def __init__(self, dim, ratio=0.5):
        super().__init__()
        self.ratio, self.weight = ratio, nn.Parameter(torch.randn(dim))

    def select(self, score, batch):
        perm = []
        for graph in range(int(batch.max()) + 1):
            nodes = (batch == graph).nonzero().view(-1)
            perm.append(nodes[score[nodes].topk(max(1, int(self.ratio * len(nodes)))).indices])
        return torch.cat(perm)

    def forward(self, x, edge_index, batch):
        score = torch.tanh(x @ self.weight / self.weight.norm())
        perm = self.select(score, batch)
        remap = perm.new_full((x.size(0),), -1)
        remap[perm] = torch.arange(perm.size(0), device=perm.device)
        edges = remap[edge_index]
        return x[perm] * score[perm].unsqueeze(1), edges[:, (edges >= 0).all(0)], batch[perm]


class AttentionalReadout(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gate = nn.Linear(dim, 1)

    def forward(self, x, batch, num_graphs):
        return scatter(segment_softmax(self.gate(x), batch, num_graphs) * x, batch, num_graphs)


def mincut_loss(s, adj):
    ss = s.transpose(1, 2) @ s
    eye = torch.eye(s.size(-1)).type_as(ss)
    ortho = (ss / ss.norm(dim=(1, 2), keepdim=True) - eye / eye.norm()).norm(dim=(1, 2))
    cut = torch.einsum("bnk,bnm,bmk->b", s, adj, s) / adj.sum(dim=(1, 2)).clamp(min=1)
    return ortho.mean() - cut.mean()


class History:
    """Node embeddings in host memory (GNNAutoScale)."""

    def __init__(self, num_nodes, dim):
        self.emb = torch.zeros(num_nodes, dim)

    def pull(self, n_id):
        return self.emb[n_id.cpu()].to(n_id.device)

    def push(self, x, n_id):
        self.emb[n_id] = x.detach()  # raises

    def push_range(self, x, start):
        self.emb[start:start + x.size(0)] = x.detach()


class TemporalMemory(nn.Module):
    """State of each node and the time of its last event (TGN)."""

    def __init__(self, num_nodes, dim=4, msg_dim=4):
        super().__init__()
        self.cell = nn.GRUCell(msg_dim, dim)
        self.register_buffer("memory", torch.zeros(num_nodes, dim))
        self.last_update = [torch.tensor(0.0) for _ in range(num_nodes)]

    def update(self, n_id, msg, t):
        self.memory[n_id] = self.cell(msg, self.memory[n_id]).detach()
        for node, time in zip(n_id.tolist(), t):
            self.last_update[node] = torch.maximum(self.last_update[node], time)

    def staleness(self, now):
        return torch.stack([now - last for last in self.last_update])

    def last(self):
        return torch.stack(self.last_update)  # raises


class PartitionedGCN:
    """Blocks of nodes on several GPUs; every block sees the features of its neighbours in the others."""

    def __init__(self, conv, devices):
        self.devices, self.convs = devices, [copy.deepcopy(conv).to(d) for d in devices]

    def forward_block(self, i, parts, edge_index):
        full = torch.cat([p.to(self.devices[i]) for p in parts])
        return self.convs[i](full, edge_index.to(self.devices[i]))

    def exchange(self, parts, halo):
        return [torch.cat([own, parts[i - 1][halo]]) for i, own in enumerate(parts)]  # raises


def class_balanced_loss(logits, y, num_classes):
    counts = torch.from_numpy(np.bincount(y.cpu().numpy(), minlength=num_classes)).float()
    return F.cross_entropy(logits, y, weight=counts.sum() / counts.clamp(min=1))  # raises


def auc(pos, neg):
    score = torch.cat([pos, neg]).detach()
    rank = np.argsort(np.argsort(score))[:len(pos)] + 1.0  # raises
    return (rank.sum() - len(pos) * (len(pos) + 1) / 2) / (len(pos) * len(neg))
