"""Modules of libraries that have tensors of their own: each is one thing, which its inputs must come to."""

import dt
import torch


@dt.models(
    "torch.quantization.HistogramObserver",
    "torch.quantization.observer.HistogramObserver",
    "torch.ao.quantization.HistogramObserver",
    "torch.ao.quantization.observer.HistogramObserver",
    "torchaudio.transforms.*Spectrogram",
    "torchaudio.transforms.*MelScale",
    "torchaudio.transforms.*FCC",
    "torchaudio.transforms.GriffinLim",
    "torchaudio.transforms.PitchShift",
    "torchaudio.transforms.Resample",
    "torchaudio.transforms.SpectralCentroid",
    "lpips.LPIPS",
    "pytorch_msssim.*SSIM",
    "segmentation_models_pytorch.*",
)
class Stateful(torch.nn.Module):
    def __init__(self, *values, **options):
        super().__init__()
        dt.own(self)

    def forward(self, x, *others, **named):
        return dt.run(self, x, *others)
