import torch
import torch.nn as nn
import l6_graphs_sequences as m
D = "cuda:0"
X = lambda *s: torch.randn(*s, device=D)
E = lambda: torch.tensor([[0, 1, 2, 0], [1, 2, 0, 0]], device=D)
B = lambda: torch.tensor([0, 0, 1], device=D)
def memory(known):
    k = m.Memory(5, 4).to(D)
    n = torch.tensor([0, 3], device=D)
    k.store(n, X(2, 4))
    k.compact(n)
    return k if known is None else k(n if known else torch.tensor([0, 2], device=D))
def hyps():
    h = m.Hypotheses(2)
    h.add(torch.ones(3, device=D), X(1)[0]); h.add(torch.ones(4, device=D), X(1)[0])
    return h.best()
T = lambda *s: torch.randint(0, 3, s, device=D)
CALLS = {
    "scatter_sum": lambda: m.scatter_sum(X(3, 2), B(), 2),
    "degree": lambda: m.degree(B()),
    "in_degree": lambda: m.in_degree(E(), 3),
    "add_self_loops": lambda: m.add_self_loops(E()),
    "add_remaining_self_loops": lambda: m.add_remaining_self_loops(E(), X(4)),
    "negative_sampling": lambda: m.negative_sampling(E(), 3),
    "structured_negatives": lambda: m.structured_negatives(E(), 3),
    "to_dense_batch": lambda: (m.to_dense_batch(X(3, 2), B()), m.to_dense_batch(X(3, 2))),
    "global_mean_pool": lambda: m.global_mean_pool(X(3, 2)),
    "global_mean_pool batch": lambda: m.global_mean_pool(X(3, 2), B()),
    "GCNConv": lambda: m.GCNConv(2, 4).to(D)(X(3, 2), E()),
    "RGCNConv": lambda: m.RGCNConv(2, 4, 2).to(D)(X(3, 2), E(), torch.tensor([0, 1, 0, 1], device=D)),
    "TimeEncoder": lambda: m.TimeEncoder(4).to(D)(),
    "m.Memory store": lambda: memory(None),
    "Memory known": lambda: memory(True),
    "Memory unknown": lambda: memory(False),
    "CRF.log_partition": lambda: m.CRF(3).to(D).log_partition(X(4, 2, 3), torch.ones(4, 2, dtype=torch.bool, device=D)),
    "CRF.viterbi": lambda: m.CRF(3).to(D).viterbi(X(4, 3)),
    "CRF.numerator": lambda: m.CRF(3).to(D).numerator(X(4, 2, 3), T(4, 2)),
    "m.Hypotheses": hyps,
    "ngram_blocking": lambda: m.ngram_blocking(T(2, 6), X(2, 3)),
    "finalize_beams": lambda: m.finalize_beams(T(4, 3), X(4), torch.tensor([0, 2], device=D), 2),
    "select_beams": lambda: m.select_beams(X(2, 2, 5), 2, 5),
    "length_penalty": lambda: m.length_penalty(X(2), [3, 4]),
    "ctc_greedy": lambda: m.ctc_greedy(X(2, 5, 4), torch.tensor([5, 3], device=D)),
    "ctc_loss_from_lists": lambda: m.ctc_loss_from_lists(X(2, 5, 4), [[1, 2], [3]]),
    "pack_and_run": lambda: m.pack_and_run(nn.LSTM(3, 4, batch_first=True).to(D), X(2, 5, 3), torch.tensor([5, 3], device=D)),
}
