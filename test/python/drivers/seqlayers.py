import torch

import seqlayers as S

G = torch.device("cuda:0")


def f(*s):
    return torch.randn(*s, device=G)


def i(hi, *s):
    return torch.randint(2, hi, s, device=G)


def two_steps(attn):
    attn.to(G)
    _, st = attn(f(1, 3, 4))
    return attn(f(1, 1, 4), st)


CALLS = {
    "sinusoidal": lambda: S.SinusoidalPositionalEmbedding(4, 1).to(G)(i(9, 2, 12)),
    "learned": lambda: S.LearnedPositions(8, 4).to(G)(i(9, 2, 3)),
    "incremental": lambda: two_steps(S.IncrementalAttention(4)),
    "masked": lambda: two_steps(S.MaskedAttention(4)),
    "alibi": lambda: S.ALiBi(2).to(G)(f(1, 2, 3, 3)),
    "local": lambda: S.LocalMask(1).to(G)(f(3, 3)),
    "specaugment": lambda: S.SpecAugment().to(G)(f(2, 6, 3)),
    "time_dropout": lambda: S.TimeDropout().to(G)(f(2, 6, 3)),
    "locked_dropout": lambda: S.LockedDropout().to(G)(f(2, 6, 3)),
    "crf_loss": lambda: S.CRF(3).to(G)(f(4, 3), i(3, 4)),
    "crf_viterbi": lambda: S.CRF(3).to(G).viterbi(f(4, 3)),
    "collate": lambda: S.collate_tokens([i(9, 3), i(9, 2)], 1),
    "padding_mask": lambda: S.lengths_to_padding_mask(i(5, 3)),
    "length_regulate": lambda: S.length_regulate(f(2, 2, 3), torch.tensor([[1, 2], [2, 2]], device=G)),
    "ngram": lambda: S.ngram_block(torch.tensor([3, 4, 3], device=G), f(9)),
    "shift_right": lambda: S.shift_right(i(9, 2, 3), 0),
}
