import numpy as np
import torch

import speech_recognizer as s

G = "cuda:0"
C = s.SpeechConfig()


def batch(moved=True):
    items = [(np.random.randn(n).astype(np.float32), [1, 2, 3]) for n in (160, 128)]
    made = s.SpeechCollator()(items)
    return s.move_batch(made, G) if moved else made


def model(encoder=s.RecurrentEncoder):
    return s.SpeechModel(C, s.MelFrontend(C.frontend), encoder(C)).to(G)


def spectra():
    return torch.rand(2, 9, 8, device=G), torch.tensor([9, 6], device=G)


def log_probs():
    return torch.randn(2, 9, 6, device=G).log_softmax(-1), torch.tensor([9, 6], device=G)


def drive_collate():
    batch(False)


def drive_cepstral():
    s.CepstralFrontend(C.frontend).to(G)(torch.rand(2, 160, device=G), torch.tensor([160, 128]))


def drive_mel():
    s.MelFrontend(C.frontend).to(G)(torch.rand(2, 160, device=G), torch.tensor([160, 128]))


def drive_stripes():
    s.SpecAugment().stripes(*spectra())


def drive_augment():
    s.SpecAugment()(spectra()[0])


def drive_ctc():
    model().ctc_loss(batch()).backward()


def drive_ctc_streaming():
    model(s.StreamingEncoder).ctc_loss(batch()).backward()


def drive_frame_loss():
    model(s.AttentionEncoder).frame_loss(batch())


def drive_pyramid():
    s.PyramidEncoder(C).to(G)(*spectra())


def drive_attention():
    encoder = s.AttentionEncoder(C)
    for device in (G, "cuda:1"):
        x, lengths = spectra()
        encoder.to(device)(x.to(device), lengths.cpu())


def drive_pooled():
    s.AttentionEncoder(C).to(G).pooled(*spectra())


def drive_alibi():
    s.AlibiEncoder(C).to(G)(*spectra())


def drive_step():
    encoder = s.StreamingEncoder(C).to(G)
    context = None
    for _ in range(2):
        _, context = encoder.step(spectra()[0], context)


def drive_step_session():
    s.StreamingEncoder(C).to(G).step_session("a", spectra()[0])


def drive_greedy():
    s.CTCDecoder(C).greedy(*log_probs())


def drive_greedy_prior():
    decoder = s.CTCDecoder(C, [0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
    decoder.greedy(*log_probs())
    decoder.confidences(log_probs()[0])


def drive_blank_share():
    s.CTCDecoder(C).blank_share(*log_probs())


def drive_search():
    s.BeamSearch(C, s.TokenModel(C).to(G)).search(3)


def drive_fuse():
    search = s.BeamSearch(C, s.TokenModel(C).to(G))
    search.fuse([s.Hypothesis([5], 0.0), s.Hypothesis([2], -1.0)], torch.randn(2, 6, device=G))


def drive_perplexity():
    s.TokenModel(C).to(G).perplexity([5, 1, 2, 3])


def ensemble():
    return s.SpeechEnsemble([s.RecurrentEncoder(C), s.AttentionEncoder(C)])


def drive_ensemble():
    made = ensemble()
    made.log_probs(*spectra())


def drive_spread():
    ensemble().spread(*spectra())


def drive_average():
    made = s.SpeechEnsemble([s.RecurrentEncoder(C) for _ in range(3)])
    made.encoders[0].load_state_dict(made.average())
