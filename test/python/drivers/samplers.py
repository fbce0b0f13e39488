import torch

import samplers as S

D = "cuda:0"
L = lambda *s: torch.randn(*(s or (2, 3, 4, 4)), device=D)
STEPS = lambda n=20: torch.randint(0, n, (2,), device=D)


def _ancestral(device=None, **kw):
    sch = S.AncestralScheduler(**kw)
    sch.set_timesteps(4, device=device)
    x = L()
    for t in sch.timesteps:
        x = sch.step(torch.tanh(x), t, x).prev_sample
    return x


def _euler(device=None):
    sch = S.EulerScheduler(beta_schedule="squaredcos")
    sch.set_timesteps(4, device=device)
    x = L() * sch.init_noise_sigma
    for t in sch.timesteps:
        x = sch.step(torch.tanh(sch.scale_model_input(x, t)), t, x).prev_sample
    return sch.add_noise(x, L(), sch.timesteps[:2])


def _scalings():
    sch = S.EulerScheduler()
    sch.set_timesteps(4, device=D)
    return sch.get_scalings(L(), sch.timesteps[:2])


def _multistep(correct=False, device=None):
    sch = S.MultistepScheduler()
    sch.set_timesteps(3, device)
    x = L()
    for t, p in zip(sch.timesteps, sch.timesteps[1:]):
        x = sch.step(torch.tanh(x), t, p, x)
    return sch.corrector(x, 2) if correct else x


DENOISE = lambda x, s: x / (1 + s.view(-1, 1, 1, 1))

CALLS = {
    "ancestral": _ancestral,
    "ancestral_device": lambda: _ancestral(D, variance_type="fixed_small_log"),
    "ancestral_learned": lambda: _ancestral(D, variance_type="learned_range", thresholding=True),
    "ancestral_add_noise": lambda: S.AncestralScheduler().add_noise(L(), L(), STEPS()),
    "euler": _euler,
    "euler_device": lambda: _euler(D),
    "euler_scalings": _scalings,
    "multistep": _multistep,
    "multistep_device": lambda: _multistep(device=D),
    "multistep_correct": lambda: _multistep(True),
    "karras": lambda: S.karras_sigmas(4, device=D),
    "heun": lambda: S.sample_heun(DENOISE, L(), S.karras_sigmas(4, device=D)),
    "heun_host_sigmas": lambda: S.sample_heun(DENOISE, L(), S.karras_sigmas(4)),
    "lms": lambda: S.sample_lms(DENOISE, L(), S.karras_sigmas(4, device=D)),
    "snr": lambda: S.compute_snr(S.ScheduleBase(), STEPS()),
    "min_snr": lambda: S.min_snr_loss(S.ScheduleBase(), L(), L(), STEPS()),
    "debiased": lambda: S.debiased_loss(S.ScheduleBase(), L(), L(), STEPS()),
    "sinusoidal": lambda: S.sinusoidal_embedding(STEPS(), 9, flip=True),
    "pos2d": lambda: S.PosEmbed2D(8, 3).to(D)(L(1, 9, 8)),
    "pos2d_other": lambda: S.PosEmbed2D(8, 3).to(D)(L(1, 4, 8)),
    "fourier": lambda: S.FourierFeatures(4).to(D)(L(3)),
    "rotary_given": lambda: S.apply_rotary(L(2, 5, 8), S.rotary_1d(8, torch.arange(5, device=D))),
    "rotary": lambda: S.apply_rotary(L(2, 5, 8)),
}
