"""Post-processing: label propagation over the normalised adjacency."""
import torch
import torch.nn.functional as F

from gnn.graph import add_self_loops, gcn_weights, sparse_adjacency


def correct_and_smooth(logits, graph, steps=3, alpha=0.8):
    nodes, classes = logits.shape
    edges = add_self_loops(graph.edge_index, nodes)
    adjacency = sparse_adjacency(edges, gcn_weights(edges, nodes), nodes)
    soft = logits.softmax(-1)
    start = soft.clone()
    start[graph.train_mask] = F.one_hot(graph.y[graph.train_mask], classes).float().to(soft.device)
    for _ in range(steps):
        soft = alpha * torch.sparse.mm(adjacency, soft) + (1 - alpha) * start
    return soft


def precompute_hops(graph, hops):
    """SGC features; done where the graph is before training."""
    nodes = graph.x.size(0)
    edges = add_self_loops(graph.edge_index, nodes)
    adjacency = sparse_adjacency(edges, gcn_weights(edges, nodes), nodes)
    x = graph.x
    for _ in range(hops):
        x = adjacency @ x
    return graph._replace(x=x)
