import torch
import speech_parts as s

D = "cuda:0"


def wave(rows=2, count=320):
    torch.manual_seed(1)
    return torch.randn(rows, count, device=D) * 0.3


def feature(rows=2, bands=10, frames=12):
    return torch.randn(rows, bands, frames, device=D)


def encoder():
    return s.StreamingEncoder().to(D)


def magnitude():
    return s.Spectrum(s.FrameConfig(), 1.0).to(D)(wave())


def normal(**options):
    return s.MeanVariance([1.0] * 10, [30.0] * 10, 20, **options).to(D)


def labels():
    return torch.tensor([1, 3], device=D)


CALLS = {
    "log_mel": lambda: s.LogMel().to(D)(wave()),
    "cepstrum": lambda: s.Cepstrum().to(D)(wave()),
    "lifted": lambda: s.LiftedMel().to(D)(wave()),
    "normal_mean": lambda: normal(apply_variance=False)(feature()),
    "normal_full": lambda: normal()(feature()),
    "deltas": lambda: s.deltas(feature()),
    "resample_same": lambda: s.Resampler()(wave(), 1600, 1600),
    "resample": lambda: s.Resampler()(wave(), 1600, 1200),
    "spec_mask": lambda: s.SpecMask(axis=-2)(feature()),
    "mix_mask": lambda: s.MixMask()(feature()),
    "encode_dynamic": lambda: encoder()(feature().transpose(1, 2), [12, 9]),
    "encode_full": lambda: encoder()(feature().transpose(1, 2), [12, 9], dynamic=False),
    "encode_pooled": lambda: encoder().pooled(feature().transpose(1, 2), [12, 9]),
    "chunk_fresh": lambda: (lambda e: [e.convolve_chunk(feature(1), True), e.convolve_chunk(feature(1))])(encoder()),
    "chunk_first": lambda: encoder().convolve_chunk(feature(1)),
    "phase_random": lambda: s.PhaseRetrieval()(magnitude()),
    "phase_ones": lambda: s.PhaseRetrieval(random_start=False)(magnitude()),
    "regulate": lambda: s.LengthRegulator()(feature(), torch.randint(1, 3, (2, 10), device=D)),
    "align_durations": lambda: s.HardAligner().durations(torch.randn(2, 9, 4, device=D)),
    "align_expand": lambda: s.HardAligner().expand(torch.randn(2, 9, 4, device=D), torch.randn(2, 4, 8, device=D)),
    "align_prior": lambda: s.HardAligner().prior_loss(torch.randn(2, 9, 4, device=D)),
    "margin_easy": lambda: s.MarginHead(6, 5, easy=True).to(D)(torch.randn(2, 6, device=D), labels()),
    "margin": lambda: s.MarginHead(6, 5).to(D)(torch.randn(2, 6, device=D), labels()),
    "permutation": lambda: s.PermutationLoss(3).to(D)(wave(6).view(2, 3, -1), wave(6).view(2, 3, -1) + 1),
    "permutation_order": lambda: s.PermutationLoss(3).to(D).reordered(wave(6).view(2, 3, -1), wave(6).view(2, 3, -1)),
    "multi_resolution": lambda: s.MultiResolutionLoss().to(D)(wave(), wave()),
    "collapse_loss": lambda: s.CollapseDecoder().loss(feature(2, 12, 7).log_softmax(-1), [[1, 2], [3]], [12, 10]),
    "collapse_text": lambda: s.CollapseDecoder()(feature(2, 12, 7).log_softmax(-1), [12, 10]),
    "mu_encode": lambda: s.MuLaw().encode(wave()),
    "mu_decode": lambda: s.MuLaw().decode(torch.randint(0, 256, (2, 30), device=D)),
}
