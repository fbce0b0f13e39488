from audio_frontend import *
import torch
D = "cuda:0"
cfg = AudioConfig()
wav = lambda: torch.randn(2, 400, device=D).clamp(-1, 1)
feats = lambda: torch.randn(2, 8, 20, device=D)


def cmvn():
    c = RunningCMVN(8)
    c.load([0.0] * 8, [1.0] * 8, feats())
    return c(feats())


def history(name):
    h = LossHistory()
    h.add(a=wav().mean(), b=wav().std())
    h.add(a=wav().mean(), b=wav().std())
    return getattr(h, name)()


def adversarial():
    real, fake = MultiPeriodDiscriminator().to(D)(wav(), wav())
    return sum(((1 - r) ** 2).mean() + (f ** 2).mean() for r, f in zip(real, fake)).backward()


lengths = lambda: torch.tensor([7, 20], device=D)
CALLS = {
    "logmel": lambda: LogMel(cfg).to(D)(wav()),
    "mfcc": lambda: MFCC(cfg).to(D)(wav()),
    "delta": lambda: DeltaFeatures().to(D)(feats()),
    "cmvn": cmvn,
    "cmvn_update": lambda: RunningCMVN(8)(feats()),
    "freq": lambda: SpecAugment().mask_frequencies(feats()),
    "time": lambda: SpecAugment().mask_times(feats()),
    "noise": lambda: AddNoise([torch.randn(100), torch.randn(900)])(wav()),
    "preemph": lambda: PreEmphasis().to(D)(wav()),
    "deemph": lambda: PreEmphasis().to(D).inverse(wav()),
    "compress": lambda: MuLawQuantizer(cfg).to(D).compress(wav()),
    "mulaw": lambda: MuLawQuantizer(cfg).to(D)(wav()),
    "pooled": lambda: UtteranceEncoder(8, 4).to(D).pooled(feats().transpose(1, 2), lengths()),
    "encoder": lambda: UtteranceEncoder(8, 4).to(D)(feats().transpose(1, 2), lengths()),
    "griffin": lambda: griffin_lim(Spectrogram(cfg).to(D)(wav()), cfg),
    "mpd": adversarial,
    "mrstft": lambda: MultiResolutionSTFTLoss().to(D)(wav(), wav()),
    "latest": lambda: history("latest"),
    "averages": lambda: history("averages"),
}
