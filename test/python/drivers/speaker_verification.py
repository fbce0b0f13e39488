import numpy as np
import torch

import speaker_verification as sv

DEV = torch.device("cuda", 0)


def _items(n=4):
    rng = np.random.RandomState(0)
    return [(f"u{i}", rng.randn(160 + 16 * i), i % 3) for i in range(n)]


def _waves():
    return torch.randn(3, 160, device=DEV)


def _emb(n=12, d=10):
    return torch.randn(n, d, device=DEV)


def drive_logmel():
    return sv.LogMelFrontend(sv.FrontendConfig()).to(DEV)(_waves())


def drive_cepstra():
    return sv.CepstralFrontend(sv.FrontendConfig()).to(DEV)(_waves())


def drive_cmvn():
    cmvn = sv.SlidingCmvn(8)
    x = torch.randn(3, 8, 11, device=DEV)
    cmvn.observe(x)
    cmvn.observe(x, torch.ones(3, 11, dtype=torch.bool, device=DEV))
    return cmvn.normalize(x)


def drive_cmvn_deviation():
    cmvn = sv.SlidingCmvn(8)
    x = torch.randn(3, 8, 11, device=DEV)
    cmvn.observe(x)
    return cmvn.whiten_deviation(x)


def drive_encoder():
    model = sv.SpeakerEncoder(sv.EncoderConfig()).to(DEV)
    batch = sv.collate_utterances(_items()).to(DEV).crop(170)
    return model(batch)


def drive_embed_stats():
    model = sv.SpeakerEncoder(sv.EncoderConfig(pooling="stats")).to(DEV)
    return model.embed(_items())


def drive_dictionary():
    model = sv.SpeakerEncoder(sv.EncoderConfig(pooling="dictionary")).to(DEV)
    return model.embed(_items())


def _labels():
    return torch.arange(12, device=DEV) % 3


def drive_am():
    return sv.AdditiveMargin(10, 3).to(DEV)(_emb(), _labels())


def drive_aam():
    return sv.AdditiveAngularMargin(10, 3).to(DEV)(_emb(), _labels())


def drive_balanced():
    return sv.BalancedMargin(10, [5, 3, 9]).to(DEV)(_emb(), _labels())


def drive_ge2e():
    return sv.GE2ELoss().to(DEV)(torch.randn(3, 4, 10, device=DEV))


def drive_hardest():
    return sv.GE2ELoss().to(DEV).hardest_negative(torch.randn(3, 4, 10, device=DEV))


def _book():
    book = sv.EnrollmentBook()
    for name in "ab":
        book.enroll(name, _emb(3))
    book.enroll("a", _emb(2))
    return book


def drive_identify():
    return _book().identify(_emb(2))


def drive_verify():
    return _book().verify("a", _emb(2))


def _plda():
    return sv.PldaBackend(10).fit(_emb(30), torch.arange(30, device=DEV) % 5)


def drive_plda_latent():
    return _plda().latent(_emb(3))


def drive_plda_score():
    return _plda().score(_emb(3), _emb(3))


def _metric():
    metric = sv.VerificationMetric()
    for _ in range(2):
        metric.update(torch.randn(6, device=DEV), torch.arange(6, device=DEV) % 2)
    return metric


def drive_eer():
    return _metric().eer()


def drive_threshold():
    return _metric().threshold()


def drive_det():
    return _metric().det_points()
