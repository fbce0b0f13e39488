import torch
from torch import nn

import diffsched as S

D = torch.device("cuda:0")
R = lambda *s: torch.randn(*s, device=D)
X = lambda: R(2, 1, 4, 4)
T = lambda: torch.tensor([3, 7], device=D)
model = lambda x, t, *c: x * 0.5 + 0 * t.view(-1, 1, 1, 1)


def _ddpm(**kw):
    s = S.DDPMScheduler(**kw)
    s.set_timesteps(4, device=D)
    x = X()
    for t in s.timesteps:
        x = s.step(x * 0.1, t, x).prev_sample
    return x


def _ddim(eta=0.0, device=None):
    s = S.DDIMScheduler()
    s.set_timesteps(4, device)
    x = X()
    for t in s.timesteps:
        x = s.step(x * 0.1, t, x, eta).prev_sample
    return x


def _reverse():
    s = S.DDIMScheduler()
    s.set_timesteps(4)
    return s.reverse_step_batch(X(), T(), X())


def _euler(churn=0.0):
    s = S.EulerDiscreteScheduler()
    s.set_timesteps(4, D)
    x = X() * s.init_noise_sigma
    for t in s.timesteps:
        x = s.step(s.scale_model_input(x, t), t, x, churn).prev_sample
    return x


def _multistep(reset):
    s = S.MultistepSolver()
    if reset:
        s.reset((2, 1, 4, 4))
    x = X()
    for t, p in ((10, 8), (8, 6)):
        x = s.step(x, t, p, x)
    s.reset()
    return x


def _ema():
    net = nn.Linear(2, 2)
    ema = S.EMAModel(net.parameters())
    ema.to(D)
    net.to(D)
    ema.step(net.parameters())
    ema.copy_to(net.parameters())


def _loss_aware(method):
    s = S.LossAwareSampler(8)
    ts, w = s.sample(4, D)
    getattr(s, method)(ts, R(4) * w)


CALLS = {
    "cos": lambda: S.betas_for_alpha_bar(5),
    "randn": lambda: S.randn_tensor((2, 3), device=D) + R(2, 3),
    "randn_list": lambda: S.randn_tensor((2, 3), [torch.Generator(), torch.Generator()], D) + R(2, 3),
    "add_noise": lambda: S.DDPMScheduler().add_noise(X(), X(), T()),
    "velocity": lambda: S.DDPMScheduler().get_velocity(X(), X(), T()),
    "ddpm": lambda: _ddpm(),
    "ddpm_cos": lambda: _ddpm(beta_schedule="squaredcos_cap_v2"),
    "ddpm_threshold": lambda: _ddpm(thresholding=True),
    "losses": lambda: S.DDPMScheduler().training_losses(model, X()),
    "losses_weighted": lambda: S.DDPMScheduler().training_losses(model, X(), True),
    "ddim": lambda: _ddim(),
    "ddim_device": lambda: _ddim(0.0, D),
    "ddim_eta": lambda: _ddim(0.5),
    "ddim_reverse": _reverse,
    "euler": lambda: _euler(),
    "euler_churn": lambda: _euler(0.5),
    "euler_noise": lambda: S.EulerDiscreteScheduler().add_noise(X(), X(), T().float()),
    "multistep": lambda: _multistep(False),
    "multistep_reset": lambda: _multistep(True),
    "embedding": lambda: S.get_timestep_embedding(T(), 5),
    "patch": lambda: S.PatchEmbed().to(D)(R(1, 1, 4, 4)),
    "patch_larger": lambda: S.PatchEmbed().to(D)(R(1, 1, 8, 8)),
    "label": lambda: S.LabelDropout(3, 4).to(D)(torch.tensor([0, 2], device=D)),
    "label_forced": lambda: S.LabelDropout(3, 4).to(D)(torch.tensor([0, 2], device=D), torch.tensor([0, 1], device=D)),
    "guidance_null": lambda: S.guidance_with_null_token(model, X(), T(), T(), 9),
    "ema": _ema,
    "loss_aware": lambda: _loss_aware("update_with_losses"),
    "loss_aware_all": lambda: _loss_aware("update_all"),
    "ancestral": lambda: S.sample_ancestral(model, X()),
    "gaussian": lambda: S.DiagonalGaussianDistribution(R(2, 4, 2, 2)).sample(torch.Generator()),
    "gaussian_kl": lambda: S.DiagonalGaussianDistribution(R(2, 4, 2, 2), True).kl(),
}
