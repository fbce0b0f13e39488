import torch

import audiogen as A

D = torch.device("cuda:0")


def x(*s):
    return torch.rand(*(s or (2, 32)), device=D) * 2 - 1


def f0():
    return x(2, 32, 1).abs() * 100 + 50


def amps():
    return x(2, 32, 5).abs()


def spec(cls):
    return cls().to(D)(x())


def loss(**kw):
    return A.MultiScaleLoss(**kw).to(D)


def rvq():
    m = A.ResidualVQ().to(D)
    return m.decode(m(x(6, 4))[1])


CALLS = {
    "overlap": lambda: A.overlap_add(A.frame(x(), 8, 4), 4) * A.db_to_amp(x(2, 1)),
    "aliased": lambda: A.remove_aliased(amps(), f0()),
    "harmonic": lambda: A.harmonic_osc(f0(), amps()),
    "saw": lambda: A.saw(f0()),
    "square": lambda: A.square(f0()),
    "vibrato": lambda: A.vibrato(f0()),
    "wavetable": lambda: A.wavetable(f0(), x(16)),
    "adsr": lambda: A.adsr(x().abs()),
    "lowpass": lambda: A.lowpass(x()),
    "half": lambda: A.resample_half(x()),
    "fft_filter": lambda: A.fft_filter(x(), (1.0, 0.5, 0.1)),
    "one_pole": lambda: A.one_pole(x(), x(2).abs()),
    "biquad": lambda: A.biquad(x(), (0.2, 0.3, 0.2), (-0.5, 0.2)),
    "delays": lambda: A.delay_lines(x()),
    "reverb": lambda: A.Reverb().to(D)(x()),
    "logspec": lambda: A.log_spectrogram(x()),
    "framed": lambda: A.framed_spectrum(x()),
    "weighted": lambda: spec(A.WeightedTransform),
    "cepstral": lambda: spec(A.CepstralTransform),
    "multi": lambda: loss(transform=A.MelTransform)(x(), x()),
    "stacked": lambda: loss().stacked(x(), x()),
    "sdr": lambda: A.sdr(x(), x()),
    "loudness": lambda: A.loudness(x()),
    "mu": lambda: A.mu_law(x()),
    "mu_table": lambda: A.mu_law_table(A.mu_law(x())),
    "rvq": lambda: rvq(),
    "perplexity": lambda: A.VectorQuantizer().to(D).perplexity_loss(x(6, 4)),
    "generate": lambda: A.WaveStack().to(D).generate(2),
    "nll": lambda: A.WaveStack().to(D).nll(torch.randint(0, 16, (2, 8), device=D)),
}
