import numpy as np
import torch
from audiosep import *

dev = "cuda:0"


def wav(n=128, device=dev):
    return torch.randn(3, n, device=device)


def feats():
    return torch.randn(3, 9, 12, device=dev)


def norm(**kwargs):
    return InputNormalization(np.zeros(12), np.ones(12), **kwargs)


def resample(second):
    r = Resample(8000, 6000)
    r(wav())
    return r(wav(device=second))


def est_ref():
    return torch.randn(3, 2, 64, device=dev), torch.randn(3, 2, 64, device=dev)


def pit():
    est, ref = est_ref()
    loss = PITLoss().to(dev)
    value, order = loss(est, ref)
    return loss.reorder(est, order)


def report(what):
    r = SeparationReport()
    est, ref = est_ref()
    r.append(wav(64), est, ref)
    return getattr(r, what)()


def spec():
    return torch.stft(wav(), 64, 32, window=torch.hann_window(64, device=dev), return_complex=True).abs()


def sep(**kwargs):
    return DualPathSeparator(**kwargs).to(dev)


CALLS = {
    "mask": lambda: length_to_mask(torch.tensor([3, 5, 2], device=dev), dtype=torch.float32) * torch.ones(3, 5, device=dev),
    "mel": lambda: MelSpectrogram().to(dev)(wav()),
    "logmel": lambda: MFCC().to(dev).log_mel(wav()),
    "mfcc": lambda: MFCC().to(dev)(wav()),
    "norm_sentence": lambda: norm().sentence(feats()),
    "norm": lambda: norm()(feats()),
    "norm_track": lambda: norm().track(feats()),
    "aug_freq": lambda: SpecAugment().mask_freq(feats()),
    "aug_drop": lambda: SpecAugment().drop_frames(feats()),
    "aug_mixup": lambda: SpecAugment().mixup(feats()),
    "resample": lambda: resample("cuda:0"),
    "resample_second": lambda: resample("cuda:1"),
    "noise": lambda: add_noise(wav(), torch.randn(5, 400)),
    "noise_gpu": lambda: add_noise(wav(), torch.randn(5, 400, device=dev)),
    "separate": lambda: sep()(wav()),
    "separate_carry": lambda: sep(carry=True)(wav()),
    "pit": pit,
    "pit_assign": lambda: PITLoss().assign(*est_ref()),
    "apply": lambda: apply_model(sep(), wav(160)),
    "apply_flat": lambda: apply_model(sep(), wav(160), fade=False),
    "griffin": lambda: griffin_lim(spec()),
    "griffin_zero": lambda: griffin_lim(spec(), rand_init=False),
    "report": lambda: report("mean"),
    "report_quantiles": lambda: report("quantiles"),
}
