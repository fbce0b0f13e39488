import numpy as np
import torch
from wave_features import *

D = "cuda"
W = lambda n=400: torch.rand(2, n, device=D)
L = lambda: torch.tensor([5, 3], device=D)


def norm(fit=False, loaded=False):
    m = Normaliser.from_file({"mean": np.zeros(4), "std": np.ones(4)}) if loaded else Normaliser(4)
    m = m.to(D)
    if fit:
        m.fit([torch.rand(6, 4, device=D)])
    return m(torch.rand(3, 4, device=D))


def utter():
    u = collate_waves([{"wave": np.ones(5)}, {"wave": np.ones(3)}])
    u = Utterances(u.wave.to(D), u.lengths.to(D))
    return u.seconds(), u.trimmed()


LP = lambda: torch.randn(2, 5, 4, device=D).log_softmax(-1)
R = lambda c: c(4, 6, 5).to(D)
CALLS = {
    "mel": lambda: mel_spectrum(W()),
    "log mel": lambda: log_mel_spectrum(W()),
    "cepstra": lambda: cepstra(W()),
    "cepstra lifted": lambda: cepstra(W(), lifter=22),
    "spectra": lambda: [spectrum(W(), window=w) for w in WINDOWS],
    "pitch": lambda: pitch_by_lag(W()),
    "voiced": lambda: voiced_pitch(W()),
    "pitch class": lambda: pitch_class(W()),
    "pre": lambda: PreEmphasis().to(D)(W()),
    "emphasised": lambda: Emphasised().to(D)(W()),
    "norm": lambda: norm(),
    "norm fit": lambda: norm(True),
    "norm loaded": lambda: norm(loaded=True),
    "bands": lambda: MaskBands(2).to(D)(torch.rand(2, 8, 8, device=D)),
    "bands eval": lambda: MaskBands(2).to(D).eval()(torch.rand(2, 8, 8, device=D)),
    "time": lambda: MaskTime(2).to(D)(torch.rand(2, 8, 8, device=D)),
    "reverb": lambda: Reverb([np.ones(4)]).to(D)(W()),
    "dry": lambda: Reverb([np.ones(4)]).to(D).dry(W()),
    "mixed": lambda: mixed_noise(W(), torch.rand(800), 10.0),
    "dither": lambda: dithered(W()),
    "dither like": lambda: dithered_like(W()),
    "rec": lambda: R(Recogniser)(torch.rand(2, 5, 4, device=D), L()),
    "stream": lambda: list(R(Recogniser).stream([torch.rand(2, 5, 4, device=D)] * 2)),
    "stream given": lambda: list(R(Recogniser).stream([torch.rand(2, 5, 4, device=D)] * 2, torch.zeros(1, 2, 6, device=D))),
    "packed": lambda: R(PackedRecogniser)(torch.rand(2, 5, 4, device=D), L()),
    "error": lambda: error_rate(LP(), torch.tensor([[1, 2], [1, 3]], device=D)),
    "errors": lambda: error_rates(LP(), torch.tensor([[1, 2], [1, 3]], device=D), L()),
    "durations": lambda: duration_targets(torch.rand(2, 3, 6, device=D)),
    "expanded": lambda: expanded(torch.rand(2, 3, 4, device=D), torch.tensor([[1, 2, 1], [2, 2, 1]], device=D)),
    "expanded rounded": lambda: expanded_rounded(torch.rand(2, 3, 4, device=D), torch.rand(2, 3, device=D)),
    "utterances": utter,
}
