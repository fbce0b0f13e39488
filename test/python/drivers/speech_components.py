import numpy as np
import torch
import speech_components as S

C = "cuda:0"


def r(*shape):
    return torch.randn(*shape, device=C)


def L(*values):
    return torch.tensor(values, device=C)


def aug():
    return S.NoiseAugment([np.random.randn(20), np.random.randn(30)], {"hall": np.random.randn(5)}).to(C)


def mel():
    return S.LogMelBatch(([0.1] * 6, [2.0] * 6)).to(C)


def scorer():
    return S.CTCPrefixScorer(r(2, 5, 4).log_softmax(-1), L(5, 3))


CALLS = {
    "fbank": lambda: S.fbank(r(64)),
    "fbank_blackman": lambda: S.fbank(r(64), window=S.BLACKMAN),
    "fbank_povey": lambda: S.fbank(r(64), window=S.POVEY),
    "mfcc": lambda: S.mfcc(r(64)),
    "smooth": lambda: S.smooth_frames(r(4, 9)),
    "cmn": lambda: S.sliding_cmn(r(7, 4)),
    "mel": lambda: mel()(r(2, 64)),
    "denormalize": lambda: mel().denormalize(r(2, 9, 6)),
    "vad_push": lambda: S.EnergyVad().push(r(40)),
    "vad_decide": lambda: S.EnergyVad().decide(r(9, 16)),
    "vad_track": lambda: S.EnergyVad().track(r(9, 16)),
    "mask": lambda: S.mask_along_axis(r(2, 9, 6), dim=2),
    "mask_adaptive": lambda: S.mask_adaptive(r(2, 9, 6), L(9, 7)),
    "noise": lambda: aug()(r(2, 50)),
    "babble": lambda: aug().babble(r(2, 50), r(2, 2)),
    "rir": lambda: aug().reverberate(r(2, 50), "hall"),
    "speed": lambda: S.speed(r(2, 50), 1.1),
    "fade": lambda: S.fade(r(2, 50), 5),
    "mask_length": lambda: S.mask_by_length(r(2, 5, 1).squeeze(-1), L(5, 3)),
    "masked_mean": lambda: S.masked_mean(r(2, 5, 3), L(5, 3)),
    "collapse": lambda: S.ctc_collapse(r(2, 5, 4), L(5, 3)),
    "forward_score": lambda: S.ctc_forward_score(r(7, 4).log_softmax(-1), L(1, 2, 2)),
    "align": lambda: S.ctc_align(r(7, 4).log_softmax(-1), L(1, 2)),
    "confidence": lambda: S.ctc_confidence(r(7, 4).log_softmax(-1), L(1, 2)),
    "prefix": lambda: scorer().final(L(1, 2)),
    "prefix_start": lambda: scorer().start(),
    "prefix_keep": lambda: scorer().keep(L(1, 0)),
    "transducer": lambda: S.Transducer(5).to(C)(r(2, 4, 8), L(1, 2).view(2, 1)),
    "greedy": lambda: S.Transducer(5).to(C).greedy(r(4, 8)),
    "stream": lambda: S.Transducer(5).to(C).stream(r(2, 8), L(1, 2).view(2, 1)),
}
