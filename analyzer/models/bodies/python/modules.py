"""Modules of libraries that have tensors of their own: each is one thing, which its inputs must come to."""

import dt
import torch


@dt.models(
    "torch.nn.Lazy*",
    "torch.nn.SyncBatchNorm",
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
    def __init__(self, *values, device=None, **options):
        super().__init__()
        dt.own(self)
        if device is not None:
            self.to(device)

    def forward(self, x, *others, **named):
        return dt.run(self, x, *others)


@dt.models(
    "torch.nn.Hardswish",
    "torch.nn.Hardsigmoid",
    "torch.nn.ChannelShuffle",
    "torch.nn.Dropout1d",
    "torch.nn.UpsamplingNearest2d",
    "torch.nn.UpsamplingBilinear2d",
)
class Stateless(torch.nn.Module):
    def __init__(self, *values, **options):
        super().__init__()

    def forward(self, x):
        return x.clone()
