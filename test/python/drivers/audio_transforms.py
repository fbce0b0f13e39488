import torch

import audio_transforms as A

DEVICE = "cuda:0"
CONFIG = A.FrameConfig()


def wave(batch=2, size=400):
    return torch.randn(batch, size, device=DEVICE)


def magnitude():
    return torch.rand(2, CONFIG.n_freqs, 20, device=DEVICE)


def spectrum():
    return torch.polar(magnitude(), magnitude())


CALLS = {
    "mel": lambda: A.MelSpectrogram(CONFIG).to(DEVICE)(wave()),
    "filterbank": lambda: magnitude().transpose(1, 2) @ A.mel_filterbank(CONFIG, torch.device(DEVICE)),
    "mfcc": lambda: A.MFCC(CONFIG).to(DEVICE)(wave()),
    "bands": lambda: A.BandEnergies(CONFIG).to(DEVICE)(wave()),
    "chroma": lambda: A.ChromaFold(CONFIG).to(DEVICE)(wave()),
    "augment": lambda: A.SpecAugment().to(DEVICE)(magnitude()),
    "augment_fill": lambda: A.SpecAugment(fill=0.0).to(DEVICE)(magnitude()),
    "augment_iid": lambda: A.SpecAugment(iid_masks=True).to(DEVICE)(magnitude()),
    "griffin_random": lambda: A.GriffinLim(CONFIG).to(DEVICE)(magnitude()),
    "griffin_ones": lambda: A.GriffinLim(CONFIG, rand_init=False).to(DEVICE)(magnitude()),
    "resample": lambda: A.resample(wave(), 16000, 8000),
    "speed": lambda: A.speed_perturb(wave()),
    "lowpass": lambda: A.lowpass(wave(), 0.2),
    "highpass": lambda: A.highpass_residual(wave(), 0.2),
    "biquad": lambda: A.biquad(wave(size=20), 0.1),
    "frame_shift": lambda: A.frame_shift(wave()),
    "frame_stats": lambda: A.frame_stats(wave()),
    "noise_floor": lambda: A.noise_floor(magnitude()),
    "pitch": lambda: A.PitchTracker(16000).frequencies(wave()),
    "pitch_histogram": lambda: A.PitchTracker(16000).histogram(wave()),
    "stft_loss": lambda: A.MultiResolutionSTFTLoss().to(DEVICE)(wave(), wave()),
    "vocoder": lambda: A.phase_vocoder(spectrum(), 1.3),
    "vocoder_given": lambda: A.phase_vocoder(spectrum(), 1.3, torch.linspace(0, 50, CONFIG.n_freqs, device=DEVICE)[:, None]),
    "mulaw": lambda: A.MuLaw().to(DEVICE).decode(A.MuLaw().encode(wave())),
    "mix_random": lambda: A.mix_at_snr(wave(), wave()),
    "mix_given": lambda: A.mix_at_snr(wave(), wave(), [5.0, 10.0]),
    "deltas": lambda: A.compute_deltas(magnitude()),
}
