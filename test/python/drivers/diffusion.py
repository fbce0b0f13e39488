import numpy as np
import torch
from torch import nn
from diffusion import *

torch.manual_seed(0)
np.random.seed(0)
D = "cuda:0"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.conv, self.lin = SinusoidalEmbedding(8), nn.Conv2d(3, 3, 3, padding=1), nn.Linear(8, 3)

    def forward(self, x, t, cond=None):
        y = self.conv(x) + self.lin(self.emb(t))[:, :, None, None]
        return y if cond is None else y + cond[:, :3, None, None]


def net():
    return Net().to(D)


def images(device=D):
    return torch.randn(2, 3, 8, 8, device=device)


T = lambda: torch.tensor([3, 7], device=D)
SHAPE = (2, 3, 8, 8)
GEN = lambda device="cpu": torch.Generator(device).manual_seed(1)
CALLS = {
    "embedding": lambda: timestep_embedding(T(), 8),
    "sinus": lambda: SinusoidalEmbedding(8).to(D)(T()),
    "noise": lambda: Scheduler().add_noise(images(), images(), T()),
    "velocity": lambda: Scheduler().get_velocity(images(), images(), T()),
    "snr": lambda: Scheduler().snr_weights(T()),
    "ddpm": lambda: sample(net(), DDPMScheduler(), SHAPE),
    "ddpm_seed": lambda: sample(net(), DDPMScheduler(beta_schedule="cosine"), SHAPE, generator=GEN()),
    "ddim": lambda: sample(net(), DDIMScheduler(), SHAPE, generator=GEN()),
    "ddim_eta": lambda: sample(net(), DDIMScheduler(eta=0.5), SHAPE),
    "ddim_eta_seed": lambda: sample(net(), DDIMScheduler(eta=0.5), SHAPE, generator=GEN()),
    "euler": lambda: sample(net(), EulerScheduler(), SHAPE),
    "heun": lambda: sample(net(), HeunScheduler(), SHAPE),
    "karras": lambda: KarrasScheduler().set_timesteps(5, D),
    "inpaint": lambda: sample(net(), DDPMScheduler(), SHAPE, known=images(), mask=np.eye(4)),
    "guided": lambda: CFGDenoiser(Net(), lambda texts: torch.zeros(len(texts), 4)).to(D)(images(), T(), torch.randn(2, 4, device=D)),
    "dynamic": lambda: dynamic_threshold(images()),
    "static": lambda: static_threshold(images()),
    "sampler": lambda: LossAwareSampler(50).sample(4, D),
    "sampler_update": lambda: LossAwareSampler(50).update(T(), torch.rand(2, device=D)),
    "sampler_update_all": lambda: LossAwareSampler(50).update_all(T(), torch.rand(2, device=D)),
    "edm": lambda: EDMLoss()(net(), images()),
    "denoising": lambda: DenoisingLoss(DDPMScheduler())(net(), images()).backward(),
    "denoising_weighted": lambda: DenoisingLoss(DDPMScheduler())(net(), images(), weighted=True),
}
