import torch
import torch.nn as nn


def normalize(edge_index, n):
    loops = torch.arange(n, device=edge_index.device)
    row, col = torch.cat([edge_index, torch.stack([loops, loops])], dim=1)
    deg = torch.zeros(n, device=row.device).index_add_(0, row, torch.ones(row.numel(), device=row.device))
    value = (deg[row] * deg[col]).rsqrt()
    return torch.sparse_coo_tensor(torch.stack([row, col]), value, (n, n)).coalesce()


class GraphConv(nn.Module):
    def __init__(self, fin, fout):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(fin, fout))
        self.bias = nn.Parameter(torch.zeros(fout))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adj):
        return torch.sparse.mm(adj, x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, fin, hidden, classes, p=0.2):
        super().__init__()
        self.layers = nn.ModuleList([GraphConv(fin, hidden), GraphConv(hidden, classes)])
        self.p, self._adj, self._key = p, None, None

    def adjacency(self, edge_index, n):
        key = (edge_index.data_ptr(), edge_index.device, n)
        if self._key != key:
            self._adj, self._key = normalize(edge_index, n), key
        return self._adj

    def forward(self, x, edge_index):
        adj = self.adjacency(edge_index, x.size(0))
        x = torch.relu(self.layers[0](x, adj))
        x = nn.functional.dropout(x, self.p, self.training)
        return self.layers[1](x, adj)
