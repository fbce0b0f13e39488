import numpy as np
import torch
import dialogue_generation as G

C = G.DialogueConfig()


def batch(n=2, labels=True):
    hs = [G.History(C).add([4, 6]).add([7, 8, 9][: k + 1]) for k in range(n)]
    return G.Batchifier(C)(hs, [[4, 6, 4]] * n if labels else None)


def model(**k): return G.DialogueModel(C, **k).to(C.device)
def search(cls, names=(), **k):
    filters = [G.LogitsFilter.registry[n](C, **o) for n, o in names]
    m = model()
    prefix, scores = cls(C, filters, **k).generate(m, batch(1))
    assert prefix.is_cuda
    return prefix


def drive_forward(): model()(batch())
def drive_encode(): model().encode(batch())
def drive_sinus(): model(positions="sinusoidal").encode(batch())
def drive_prefix(): G.TurnEmbedding(C).to("cuda").prefix(torch.rand(2, 8, device="cuda"), 3)
def drive_sorted(): model().encode_sorted(batch())
def drive_greedy(): search(G.GreedySearch)
def drive_history(): G.History(C).add(search(G.GreedySearch)[0]).tokens()
def drive_beam(): search(G.BeamSearch, [("blocked", {}), ("ngram", {})])
def drive_repetition(): search(G.BeamSearch, [("repetition", {})])
def drive_bias(): search(G.GreedySearch, [("bias", {"bias": {4: 1.0}})])
def drive_typical(): search(G.GreedySearch, [("typical", {})])
def drive_nucleus(): search(G.NucleusSampling)
def cands(): return torch.randint(1, 20, (5, 3))
def drive_rank(): G.ReplyReranker(model()).to("cuda").rank(torch.randint(1, 20, (2, 4)), cands())
def drive_rank_kept():
    r = G.ReplyReranker(model()).to("cuda"); r.keep(cands()); r.rank_kept(batch().text)
def drive_kept_subset():
    r = G.ReplyReranker(model()).to("cuda"); r.keep(cands()); r.kept_subset([1, 2])
def loss(): return G.UnlikelihoodLoss(C).to("cuda")
def drive_loss():
    b = batch(); loss()(model()(b), b.labels)["loss"].backward()
def drive_loss_rare():
    b = batch(); loss().likelihood(model()(b), b.labels, rare=True)
def drive_gap(): loss().frequency_gap(np.ones(20) / 20)
def drive_turns(): G.TurnWeighting()(batch(), torch.rand(2, device="cuda"))
def drive_uniform(): G.TurnWeighting().uniform(torch.rand(2, device="cuda"))
