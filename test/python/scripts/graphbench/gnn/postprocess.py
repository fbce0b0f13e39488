import torch


def _adjacency(graph):
    n = graph.num_nodes
    values = torch.ones(graph.edge_index.size(1), device=graph.edge_index.device)
    adj = torch.zeros(n, n, device=graph.x.device)
    adj[graph.edge_index[0], graph.edge_index[1]] = values
    return adj / adj.sum(1, keepdim=True).clamp(min=1)


def lp(probs, graph, num_classes, rounds=3, alpha=0.8):
    """Label propagation, started at the known labels; done on the host."""
    adj = _adjacency(graph).cpu()
    known = graph.train_mask.cpu()
    start = torch.zeros(graph.num_nodes, num_classes)
    start[known] = torch.eye(num_classes)[graph.y.cpu()[known]]
    f = start.clone()
    for _ in range(rounds):
        f = alpha * (adj @ f) + (1 - alpha) * start
    return (probs.cpu() + f).to(probs.device)


def cs(probs, graph, num_classes, rounds=3, alpha=0.8):
    """Correct and smooth."""
    adj = _adjacency(graph)
    onehot = torch.eye(num_classes)[graph.y]  # raises
    error = torch.zeros_like(probs)
    error[graph.train_mask] = onehot[graph.train_mask] - probs[graph.train_mask]
    smooth = error.clone()
    for _ in range(rounds):
        smooth = alpha * (adj @ smooth) + (1 - alpha) * error
    return probs + smooth
