import argparse
import math
from functools import wraps
from itertools import islice

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


# --------------------------------------------------------------------------- graph containers

class Graph:
    """Poor man's torch_geometric.data.Data"""

    def __init__(self, **kwargs):
        self.__dict__['_store'] = {}
        for k, v in kwargs.items():
            setattr(self, k, v)

    def __setattr__(self, key, value):
        self._store[key] = value

    def __getattr__(self, key):
        try:
            return self.__dict__['_store'][key]
        except KeyError:
            raise AttributeError(key)

    def __contains__(self, key):
        return key in self._store

    def apply(self, fn, *keys):
        for k in keys or list(self._store):
            if torch.is_tensor(self._store[k]):
                self._store[k] = fn(self._store[k])
        return self

    def to(self, device, *keys):
        return self.apply(lambda t: t.to(device), *keys)

    @property
    def num_nodes(self):
        return self.x.size(0)


def ring(n=6, dim=4, classes=3):
    src = torch.arange(n)
    dst = (src + 1) % n
    return Graph(x=torch.randn(n, dim), edge_index=torch.stack([torch.cat([src, dst]), torch.cat([dst, src])]),
                 y=torch.randint(0, classes, (n,)), train_mask=torch.arange(n) % 2 == 0)


def degree(index, n):
    return torch.zeros(n, device=index.device).scatter_add_(0, index, torch.ones(index.numel(), device=index.device))


def scatter_mean(src, index, n):
    out = src.new_zeros(n, src.size(1))
    out.index_add_(0, index, src)  # raises
    return out / degree(index, n).clamp(min=1).unsqueeze(1)


def scatter_max_slow(src, index, n):
    out = torch.full((n, src.size(1)), -1e9)
    return out.scatter_reduce(0, index.view(-1, 1).expand_as(src), src, reduce='amax')  # raises


def add_self_loops(edge_index, n):
    loops = torch.arange(n, dtype=torch.long).repeat(2, 1)
    return torch.cat([edge_index, loops.to(edge_index)], dim=1)


def to_dense(edge_index, n):
    ones = torch.ones(edge_index.size(1))
    adj = torch.sparse_coo_tensor(edge_index, ones, (n, n))  # raises
    return adj.to_dense()


def gcn_norm(edge_index, n):
    edge_index = add_self_loops(edge_index, n)
    row, col = edge_index
    dis = degree(row, n).pow(-0.5)
    return edge_index, dis[row] * dis[col]


# --------------------------------------------------------------------------- layers

class GCNConv(nn.Module):
    def __init__(self, cin, cout, cached=False):
        super().__init__()
        self.lin = nn.Linear(cin, cout, bias=False)
        self.cached = cached
        self._norm = None

    def forward(self, x, edge_index):
        norm = self._norm
        if norm is None:
            norm = gcn_norm(edge_index, x.size(0))
            if self.cached:
                self._norm = norm
        edge_index, w = norm
        h = self.lin(x)
        msg = h[edge_index[0]] * w.view(-1, 1)  # raises
        return torch.zeros_like(h).index_add_(0, edge_index[1], msg)

    def reset_cache(self):
        self._norm = None


class SAGEConv(nn.Module):
    def __init__(self, cin, cout, aggr=scatter_mean):
        super().__init__()
        self.l, self.r = nn.Linear(cin, cout), nn.Linear(cin, cout)
        self.aggr = aggr

    def forward(self, x, edge_index):
        src, dst = edge_index
        return self.l(x) + self.r(self.aggr(x[src], dst, x.size(0)))


class GATConv(nn.Module):
    def __init__(self, cin, cout, heads=2):
        super().__init__()
        self.lin = nn.Linear(cin, cout * heads)
        self.att = nn.ParameterList([nn.Parameter(torch.randn(cout)) for _ in range(heads)])
        self.heads = heads

    def forward(self, x, edge_index):
        mask = to_dense(edge_index.cpu(), x.size(0)).to(x.device) > 0
        outs = []
        for h, a in zip(self.lin(x).chunk(self.heads, -1), self.att):
            e = F.leaky_relu((h @ a).unsqueeze(0) + (h @ a).unsqueeze(1))
            outs.append(e.masked_fill(~mask, -1e9).softmax(-1) @ h)
        return torch.stack(outs).mean(0)


class RelationalConv(nn.Module):
    """One weight per relation in a dict; `tied` shares a constant basis"""

    def __init__(self, rels, cin, cout, tied=False):
        super().__init__()
        self.weights = nn.ParameterDict({r: nn.Parameter(torch.randn(cin, cout) * .1) for r in rels})
        self.basis = {r: torch.eye(cin) for r in rels} if tied else None

    def forward(self, x, edges):
        out = 0
        for rel, ei in edges.items():
            h = x
            if self.basis is not None:
                h = h @ self.basis[rel]  # raises
            out = out + scatter_mean((h @ self.weights[rel])[ei[0]], ei[1], x.size(0))
        return out


class Net(nn.Module):
    def __init__(self, conv=GCNConv, dims=(4, 8, 3), **kw):
        super().__init__()
        self.convs = nn.ModuleList(conv(a, b, **kw) for a, b in zip(dims, dims[1:]))
        self.drop = 0.1

    def forward(self, g: Graph):
        x = g.x
        for i, c in enumerate(self.convs):
            x = c(x, g.edge_index)
            if i + 1 < len(self.convs):
                x = F.dropout(F.relu(x), self.drop, self.training)
        return x


def node_loss(out, g):
    return F.cross_entropy(out[g.train_mask], g.y[g.train_mask])  # raises


# --------------------------------------------------------------------------- positional encodings, pooling

def memoize(fn):
    table = {}

    @wraps(fn)
    def inner(g, *args):
        key = (id(g), *args)
        if key not in table:
            table[key] = fn(g, *args)
        return table[key]

    inner.clear = table.clear
    return inner


@memoize
def laplacian_pe(g, k=2):
    adj = to_dense(g.edge_index.cpu(), g.num_nodes)
    lap = torch.diag(adj.sum(1)) - adj
    return torch.linalg.eigh(lap)[1][:, 1:k + 1].to(g.x.device)


def random_walk_pe(g, k=2):
    n = g.num_nodes
    adj = torch.sparse_coo_tensor(g.edge_index, torch.ones(g.edge_index.size(1), device=g.edge_index.device), (n, n)).to_dense()
    p = adj / adj.sum(1, keepdim=True)
    return torch.stack([torch.matrix_power(p, i + 1).diagonal() for i in range(k)], 1)


def with_pe(g):
    return torch.cat([g.x, laplacian_pe(g)], dim=1)  # raises


def global_pool(x, batch, n=None, how='mean'):
    n = n or int(batch.max()) + 1
    fns = dict(mean=scatter_mean, max=scatter_max_slow)
    return fns[how](x, batch, n)


class NeighborSampler:
    def __init__(self, g, size=2, seed=0):
        self.g = g
        self.size = size
        self.gen = torch.Generator().manual_seed(seed)

    def __iter__(self):
        order = torch.randperm(self.g.num_nodes, generator=self.gen)
        for seeds in order.split(self.size):
            hit = torch.isin(self.g.edge_index[1], seeds)  # raises
            yield seeds, self.g.edge_index[:, hit]


def negative_edges(g, n, seed=None):
    gen = None if seed is None else torch.Generator().manual_seed(seed)
    return torch.randint(0, g.num_nodes, (2, n), generator=gen)


def link_logits(z, pairs):
    return (z[pairs[0]] * z[pairs[1]]).sum(-1)


def link_loss(z, g):
    pos = link_logits(z, g.edge_index)
    neg = link_logits(z, negative_edges(g, 4, seed=0))
    scores = torch.cat([pos, neg])
    labels = torch.cat([torch.ones(len(pos)), torch.zeros(len(neg))])
    return F.binary_cross_entropy_with_logits(scores, labels)  # raises


# --------------------------------------------------------------------------- cases

def parse(*argv):
    p = argparse.ArgumentParser()
    p.add_argument('--device', default='cuda:0')
    p.add_argument('--eval-device', default=None)
    p.add_argument('--pe', action='store_true')
    args = p.parse_args(argv)
    args.eval_device = args.eval_device or args.device
    return args


def case_full_batch_training():
    args = parse()
    g = ring().to(args.device)
    net = Net(SAGEConv).to(args.device)
    opt = torch.optim.Adam(net.parameters())
    for _ in range(2):
        loss = node_loss(net(g), g)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


def case_only_named_keys_moved():
    args = parse('--device', 'cuda:1')
    g = ring().to(args.device, 'x', 'edge_index')
    net = Net(GATConv).to(args.device)
    return node_loss(net(g), g)


def case_mask_may_stay():
    g = ring()
    g.to('cuda', 'x', 'edge_index', 'y')
    net = Net(SAGEConv).cuda()
    out = net(g)
    correct = out.argmax(1)[g.train_mask] == g.y[g.train_mask]
    return node_loss(out, g).item(), correct.float().mean().item()


def case_cached_norm_survives_move():
    args = parse('--eval-device', 'cpu')
    g = ring().to(args.device)
    net = Net(GCNConv, cached=True).to(args.device)
    net(g).sum().backward()
    net.eval().to(args.eval_device)
    g.to(args.eval_device)
    with torch.no_grad():
        return net(g)


def case_cached_norm_reset():
    args = parse('--eval-device', 'cuda:3')
    g = ring().to(args.device)
    net = Net(GCNConv, cached=True).to(args.device)
    net(g)
    for m in net.modules():
        getattr(m, 'reset_cache', lambda: None)()
    net.to(args.eval_device)
    return net(g.to(args.eval_device)).detach().cpu().numpy().shape


def case_relational_tied_basis():
    rels = ('cites', 'writes')
    g = ring().to('cuda')
    edges = {r: g.edge_index for r in rels}
    plain = RelationalConv(rels, 4, 3).cuda()
    tied = RelationalConv(rels, 4, 3, tied=True).cuda()
    return plain(g.x, edges) + tied(g.x, edges)


def case_pe_memoized_before_move():
    g = ring()
    stats = with_pe(g).mean(0)
    g.to('cuda')
    return stats, nn.Linear(6, 3).cuda()(with_pe(g))


def case_pe_memo_cleared():
    g = ring()
    stats = with_pe(g).mean(0)
    g.to('cuda')
    laplacian_pe.clear()
    feats = torch.cat([with_pe(g), random_walk_pe(g)], 1)
    return stats, nn.Linear(8, 3).cuda()(feats).sum().item()


def case_pool_max_template():
    net = Net(SAGEConv).cuda()
    g = ring().to('cuda')
    g.batch = torch.tensor([0, 0, 0, 1, 1, 1]).to('cuda')
    mean = global_pool(net(g), g.batch)
    return mean + global_pool(net(g), g.batch, how='max')


def case_batch_vector_left():
    g = ring().to('cuda')
    g.batch = torch.arange(g.num_nodes) // 3
    out = Net(SAGEConv).cuda()(g)
    return global_pool(out, g.batch)


def case_dense_adjacency_on_device():
    g = ring().to('cuda:2')
    dense = to_dense(g.edge_index, g.num_nodes)
    return dense.to(g.x.device) @ g.x


def case_sampler_on_host_graph():
    g = ring()
    net = SAGEConv(4, 3).cuda()
    table = g.x.cuda()
    losses = []
    for seeds, sub in islice(NeighborSampler(g), 3):
        out = net(table, sub.cuda())
        losses.append(F.cross_entropy(out[seeds], g.y[seeds].cuda()).item())
    return losses


def case_sampler_on_moved_graph():
    g = ring().to('cuda')
    net = SAGEConv(4, 3).cuda()
    it = iter(NeighborSampler(g))
    try:
        seeds, sub = next(it)
    except StopIteration:
        return None
    return net(g.x, sub)[seeds]


def case_link_prediction_labels():
    g = ring().to('cuda')
    z = Net(SAGEConv).cuda()(g)
    return link_loss(z, g)


def case_link_negative_indices():
    g = ring().to('cuda')
    z = Net(SAGEConv).cuda()(g)
    neg = negative_edges(g, 5)
    logits = link_logits(z, neg)
    target = torch.zeros_like(logits)
    return F.binary_cross_entropy_with_logits(logits, target).item()
