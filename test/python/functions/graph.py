import itertools
from typing import Dict, NamedTuple, Optional
import torch
import torch.nn as nn
import torch.nn.functional as F


class Data:
    """a bag of tensors; .to works in place and returns self, like pyg's"""

    def __init__(self, **kw):
        self.__dict__.update(kw)

    def keys(self):
        return [k for k in self.__dict__ if not k.startswith('_')]

    def apply(self, fn, *names):
        for k in names or self.keys():
            v = getattr(self, k)
            if torch.is_tensor(v):
                setattr(self, k, fn(v))
        return self

    def to(self, device, *names):
        return self.apply(lambda t: t.to(device), *names)

    @property
    def num_nodes(self):
        return self.x.size(0)


class FrozenData(NamedTuple):
    x: torch.Tensor
    edge_index: torch.Tensor
    batch: Optional[torch.Tensor] = None

    def to(self, device):
        return FrozenData(*(None if t is None else t.to(device) for t in self))


def ring(n=6, f=4):
    src = torch.arange(n)
    ei = torch.stack([torch.cat([src, (src + 1) % n]), torch.cat([(src + 1) % n, src])])
    return Data(x=torch.randn(n, f), edge_index=ei, y=src % 2, train_mask=src < n // 2, name='ring')


def degree(index, num_nodes, dtype=None):
    out = torch.zeros((num_nodes,), dtype=dtype, device=index.device)
    one = torch.ones((index.size(0),), dtype=out.dtype, device=out.device)
    return out.scatter_add_(0, index, one)


def add_self_loops(edge_index, num_nodes):
    loop = torch.arange(0, num_nodes, dtype=torch.long)
    loop = loop.unsqueeze(0).repeat(2, 1)
    return torch.cat([edge_index, loop], dim=1)  # raises


def add_remaining(edge_index, num_nodes):
    loop = torch.arange(num_nodes).to(edge_index)
    return torch.cat([edge_index, loop.expand(2, -1)], dim=1)


class GCN(nn.Module):
    def __init__(self, f=4, h=8, c=2, loops=add_remaining):
        super().__init__()
        self.lins = nn.ModuleList([nn.Linear(f, h, bias=False), nn.Linear(h, c, bias=False)])
        self.bias = nn.ParameterList([nn.Parameter(torch.zeros(k)) for k in (h, c)])
        self.loops = loops

    def propagate(self, x, ei):
        row, col = ei
        d = degree(col, x.size(0), x.dtype).pow(-.5)
        d[d == float('inf')] = 0
        msg = (d[row] * d[col]).unsqueeze(-1) * x[row]
        return x.new_zeros(x.shape).index_add_(0, col, msg)

    def forward(self, x, ei):
        ei = self.loops(ei, x.size(0))
        for i, (lin, b) in enumerate(zip(self.lins, self.bias)):
            x = self.propagate(lin(x), ei) + b
            x = F.dropout(x.relu(), .5, self.training) if i == 0 else x
        return F.log_softmax(x, -1)


# clean
def case_bag_moves_in_place():
    g = ring()
    g.to('cuda')
    model = GCN().to(g.x.device)
    opt = torch.optim.Adam([dict(params=model.lins.parameters(), weight_decay=5e-4), dict(params=model.bias.parameters())], lr=.01)
    for _ in range(3):
        model.train()
        opt.zero_grad()
        out = model(g.x, g.edge_index)
        F.nll_loss(out[g.train_mask], g.y[g.train_mask]).backward()
        opt.step()
    model.eval()
    pred = model(g.x, g.edge_index).argmax(-1)
    return int((pred[~g.train_mask] == g.y[~g.train_mask]).sum()) / g.num_nodes


# broken
def case_named_tuple_moves_by_value():
    g0 = ring()
    g = FrozenData(g0.x, g0.edge_index, torch.zeros(6, dtype=torch.long))
    g.to('cuda')
    lin = nn.Linear(4, 3).cuda()
    h = lin(g.x)  # raises
    return h.new_zeros(1, 3).index_add_(0, g.batch, h)


# broken
def case_self_loops_on_host():
    g = ring().to('cuda')
    model = GCN(loops=add_self_loops)
    model = model.cuda()
    with torch.no_grad():
        return model(g.x, g.edge_index).exp()


# broken
def case_negative_sampling():
    g = ring(8).to('cuda', 'x', 'edge_index')
    emb = GCN(c=5).cuda()(g.x, g.edge_index)

    def sample(n_nodes, k):
        idx = torch.randint(n_nodes * n_nodes, (k,))
        return torch.stack([torch.div(idx, n_nodes, rounding_mode='floor'), idx % n_nodes])

    def decode(z, ei):
        return (z[ei[0]] * z[ei[1]]).sum(-1)

    pos, neg = g.edge_index, sample(g.num_nodes, g.edge_index.size(1))
    logits = torch.cat([decode(emb, pos), decode(emb, neg)])      # host indices are fine here
    target = torch.cat([pos.new_ones(pos.size(1)), neg.new_zeros(neg.size(1))]).float()  # raises
    return F.binary_cross_entropy_with_logits(logits, target)


# clean
def case_hetero_dict():
    feats: Dict[str, torch.Tensor] = {'author': torch.randn(3, 4), 'paper': torch.randn(5, 4)}
    edges = {('author', 'writes', 'paper'): torch.tensor([[0, 1, 2, 2], [0, 1, 3, 4]]),
             ('paper', 'cites', 'paper'): torch.tensor([[0, 1], [2, 3]])}
    dev = torch.device('cuda', torch.cuda.current_device())
    convs = nn.ModuleDict({'__'.join(k): nn.Linear(4, 4) for k in edges}).to(dev)
    feats = {k: v.to(dev) for k, v in feats.items()}
    out = {k: torch.zeros_like(v) for k, v in feats.items()}
    for (s, r, d), ei in edges.items():
        m = convs[f'{s}__{r}__{d}'](feats[s])[ei[0]]
        out[d].index_add_(0, ei[1].to(dev), m)
    batch = torch.tensor([0, 0, 1, 1, 1])
    n = torch.bincount(batch)
    pooled = torch.stack([c.mean(0) for c in out['paper'].split(n.tolist())])
    return pooled.cpu().tolist()


# clean
def case_dense_batch_from_ptr():
    graphs = [ring(n) for n in (3, 4, 5)]
    sizes = [g.num_nodes for g in graphs]
    ptr = list(itertools.accumulate(sizes, initial=0))
    x = torch.cat([g.x for g in graphs]).cuda()
    batch = torch.arange(len(sizes), device='cuda').repeat_interleave(torch.tensor(sizes, device=x.device))
    pos = torch.cat([torch.arange(n) for n in sizes])
    dense = x.new_zeros(len(sizes), max(sizes), x.size(-1))
    dense[batch, pos.to(x.device)] = x
    mask = torch.zeros(len(sizes), max(sizes), dtype=torch.bool)
    for i, n in enumerate(sizes):
        mask[i, :n] = True
    flat = dense[mask]                       # boolean host mask on a gpu tensor
    first = dense.view(-1, x.size(-1)).index_select(0, torch.tensor(ptr[:-1], device=dense.device))
    adj = torch.sparse_coo_tensor(graphs[0].edge_index, torch.ones(6), (3, 3)).to('cuda')
    hop = torch.sparse.mm(adj, x[:3])
    return (flat - x).abs().sum() + first.sum() * 0 + hop.sum() * 0
