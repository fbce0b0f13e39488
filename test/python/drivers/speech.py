from speech import *
import torch
from torch import nn

D = "cuda:0"


class Decoder(nn.Module):
    def __init__(self, vocab=8):
        super().__init__()
        self.emb, self.out = nn.Embedding(vocab, 6), nn.Linear(6, vocab)

    def forward(self, token, memory):
        return self.out(self.emb(token) + memory).log_softmax(-1).detach()


def rand(*shape):
    return torch.rand(*shape, device=D)


def lengths():
    return torch.tensor([9, 5, 7], device=D)


def searcher(**kw):
    return BeamSearcher(Decoder().to(D), **kw)


def lm(device=D):
    return nn.Sequential(nn.Embedding(8, 6), nn.Linear(6, 8)).to(device)


def fusion(device):
    m = ShallowFusion(Decoder().to(D), lm(device))
    BeamSearcher(m).greedy(rand(2, 6))


def stream(start):
    m = CausalConv(4).to(D)
    if start:
        m.start()
    m(rand(1, 4, 10))
    m(rand(1, 4, 10))


def speakers(verify):
    s = SpeakerIndex()
    s.enroll("a", rand(3, 6))
    s.verify("a", rand(6)) if verify else s.distances(rand(6))


def hyps():
    h = BeamHypotheses(2)
    for n in (3, 4, 5):
        h.add(torch.arange(n, device=D), torch.rand((), device=D))
    h.best()


def cache():
    return [{"k": rand(4, 6), "v": rand(4, 6)} for _ in range(2)]


def finished():
    s = searcher()
    s.finished(s.search(rand(2, 6))[0])


CALLS = {
    "fbank": lambda: Filterbank().to(D)(STFT().to(D)(rand(2, 640))),
    "deltas": lambda: Deltas(20).to(D)(rand(2, 9, 20)),
    "mfcc": lambda: mfcc(rand(2, 9, 20)),
    "pool": lambda: MaskedPooling()(rand(3, 9, 4), lengths()),
    "pool_last": lambda: MaskedPooling().last(rand(3, 9, 4), lengths()),
    "pool_max": lambda: MaskedPooling().maximum(rand(3, 9, 4), lengths()),
    "relpos": lambda: [RelPositionalEncoding(4).to(D)(rand(3, n, 4)) for n in (9, 30)],
    "greedy_ctc": lambda: ctc_greedy_decode(rand(3, 9, 5), lengths()),
    "viterbi": lambda: align_viterbi(rand(9, 5).log(), [1, 2, 3]),
    "trellis": lambda: build_trellis(rand(9, 5).log(), [1, 2, 3]),
    "hyps": hyps,
    "greedy": lambda: searcher().greedy(rand(2, 6)),
    "search": lambda: searcher(min_steps=2).best(rand(2, 6)),
    "search_banned": lambda: searcher().search(rand(2, 6), banned=[0, 1]),
    "finished": finished,
    "fusion": lambda: fusion(D),
    "fusion_split": lambda: fusion("cuda:1"),
    "reorder": lambda: reorder_cache(cache(), [0, 0, 2, 1]),
    "reorder_gather": lambda: reorder_cache(cache(), [0, 0, 2, 1], keep=False),
    "stream": lambda: stream(False),
    "stream_started": lambda: stream(True),
    "speakers": lambda: speakers(False),
    "speakers_verify": lambda: speakers(True),
    "griffin": lambda: griffin_lim_init(rand(9, 5)),
}
