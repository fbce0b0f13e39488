import numpy as np
import torch
from torch import nn

import denoise as S

D = torch.device("cuda:0")
P = lambda *s: torch.randn(*s, device=D)
T = lambda n=2, high=20: torch.randint(high, (n,), device=D)


class Net(nn.Module):
    def __init__(self, cond=2):
        super().__init__()
        self.lin, self.cond = nn.Linear(4, 4), nn.Linear(cond, 4)

    def forward(self, x, t, cond=None):
        out = self.lin(x) + t.float().view(-1, 1)
        return out if cond is None else out + self.cond(cond)


def _loop(sched, device=D, **kw):
    sched.set_timesteps(3, device=device)
    net, x = Net().to(D), P(2, 4)
    with torch.no_grad():
        for t in sched.timesteps:
            x = sched.step(net(x, t.to(D).expand(2)), t, x, **kw)[0]
    return x


def _learned():
    sched = S.DDPMScheduler(variance_type="learned_range").set_timesteps(2, D)
    x = P(2, 4)
    for t in sched.timesteps:
        x = sched.step(P(2, 8), t, x).prev_sample
    return x


def _euler(device):
    sched = S.EulerScheduler()
    sched.set_timesteps(20, device)
    x = P(2, 4) * sched.init_noise_sigma
    for t in sched.timesteps[:3]:
        x = sched.step(sched.scale_model_input(x, t), t, x).prev_sample
    return x


def _sampler(cls):
    s = cls(20)
    t, w = s.sample(3, D)
    s.update(t, w * P(3).abs())
    return s.sample(2, D)


def _guide(**kw):
    return S.ClassifierFreeGuidance(Net(), 2, **kw).to(D)


def _ancestral(device, noise=None):
    with torch.no_grad():
        return S.sample_ancestral(Net().to(D), P(2, 4), S.karras_sigmas(3, device=device), noise)


CALLS = {
    "randn": lambda: S.randn_tensor((2, 3), torch.Generator().manual_seed(0), D) + P(2, 3),
    "randn_many": lambda: S.randn_tensor((2, 3), [torch.Generator(D), torch.Generator()], D) + P(2, 3),
    "extract": lambda: S.extract(S.make_betas("cosine", 20), T(), P(2, 4)),
    "add_noise": lambda: S.DDIMScheduler(schedule="scaled").add_noise(P(2, 4), P(2, 4), T()),
    "velocity": lambda: S.DDIMScheduler().get_velocity(P(2, 4), P(2, 4), T()),
    "ddpm": lambda: _loop(S.DDPMScheduler(clip=True), generator=torch.Generator().manual_seed(0)),
    "ddpm_learned": _learned,
    "ddim": lambda: _loop(S.DDIMScheduler(prediction_type="v_prediction")),
    "ddim_eta": lambda: _loop(S.DDIMScheduler(), eta=0.5),
    "ddim_eta_noise": lambda: _loop(S.DDIMScheduler(), eta=0.5, variance_noise=P(2, 4)),
    "euler": lambda: _euler(D),
    "euler_host_steps": lambda: _euler(None),
    "euler_add_noise": lambda: S.EulerScheduler().set_timesteps(20, D).add_noise(P(2, 4), P(2, 4), T()),
    "multistep": lambda: _loop(S.MultistepScheduler()),
    "multistep_offload": lambda: _loop(S.MultistepScheduler(offload=True)),
    "heun": lambda: S.sample_heun(lambda x, s: Net().to(D)(x, s).detach(), P(2, 4), S.karras_sigmas(3, device=D), churn=0.1),
    "heun_host_sigmas": lambda: S.sample_heun(lambda x, s: Net().to(D)(x, s).detach(), P(2, 4), S.karras_sigmas(3)),
    "ancestral": lambda: _ancestral(D),
    "ancestral_host_sigmas": lambda: _ancestral("cpu"),
    "ancestral_brownian": lambda: _ancestral(D, S.BrownianNoise(P(2, 4), 0.1, 10.0)),
    "weight_snr": lambda: S.LossWeighting(S.DDPMScheduler())(P(2, 4), T()),
    "weight_table": lambda: S.LossWeighting(S.DDPMScheduler(), mode="table")(P(2, 4), T()),
    "importance": lambda: _sampler(S.ImportanceSampler),
    "histogram": lambda: _sampler(S.HistogramSampler),
    "cfg_train": lambda: _guide().train_step(P(2, 4), T(), P(2, 2)),
    "cfg_guided": lambda: _guide(rescale=True).guided(P(2, 4), T(), P(2, 2)),
    "cfg_scales": lambda: _guide().guided(P(2, 4), T(), P(2, 2), [1.0, 4.0]),
    "threshold": lambda: S.dynamic_threshold(P(2, 4)),
    "inpaint": lambda: S.inpaint_blend(P(2, 4), P(2, 4), np.array([1, 0, 1, 0]), S.DDPMScheduler(), 3),
}
