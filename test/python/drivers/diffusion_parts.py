import torch

import diffusion_parts as D

DEV = "cuda:0"


def img(n=2):
    return torch.randn(n, 3, 8, 8, device=DEV)


def steps():
    return torch.tensor([3, 7], device=DEV)


def model(x, t, c=None):
    return x * 0.5


def sampled(kind, amount=5, **config):
    scheduler, x = kind(D.SchedulerConfig(**config)), img()
    scheduler.set_timesteps(amount, device=DEV)
    for t in scheduler.timesteps:
        x = scheduler.step(model(x, t), t, x)
    return x


def multistep():
    scheduler, x = D.MultistepScheduler(), img()
    for t in (4, 3, 2):
        x = scheduler.step(model(x, t), t, x)
    return scheduler


def seeded():
    return D.AncestralScheduler().step(img(), 5, img(), torch.Generator().manual_seed(0))


def masking(structured):
    layer = D.RandomMasking(0.5, 16, structured).to(DEV)
    return layer.restore(*layer(torch.randn(2, 8, 16, device=DEV)))


def tokens():
    return torch.randn(2, 4, 4, 16, device=DEV)


CALLS = {
    "ancestral": lambda: sampled(D.AncestralScheduler),
    "ancestral_velocity": lambda: sampled(D.AncestralScheduler, prediction="velocity", betas="cosine"),
    "ancestral_generator": seeded,
    "seeded": lambda: sampled(D.SeededScheduler),
    "euler": lambda: sampled(D.EulerScheduler, 20),
    "euler_noise": lambda: D.EulerScheduler().add_noise(img(), img(), steps()),
    "step_of": lambda: D.ContinuousScheduler().step_of(torch.tensor([0.1, 0.3], device=DEV)),
    "multistep": multistep,
    "multistep_combine": lambda: multistep().combine(),
    "loss": lambda: D.diffusion_loss(D.AncestralScheduler(), model, img(), steps()),
    "loss_weighted": lambda: D.diffusion_loss(D.AncestralScheduler(), model, img(), steps(), weighted=True),
    "guidance": lambda: D.Guidance(model)(img(), 3, torch.randn(2, 4, device=DEV)),
    "guidance_scheduled": lambda: D.ScheduledGuidance(model, 20).combine_at(img(), img(), steps()),
    "threshold": lambda: D.DynamicThreshold()(img()),
    "threshold_robust": lambda: D.RobustThreshold()(img()),
    "soft_inpaint": lambda: D.soft_inpaint(img(), img(), 0.5),
    "time_mlp": lambda: D.TimeMLP(16, lambda s: D.timestep_embedding(s, 16)).to(DEV)(steps()),
    "time_fourier": lambda: D.TimeMLP(16, D.FourierFeatures(16)).to(DEV)(steps()),
    "fourier_shifted": lambda: D.FourierFeatures(16).to(DEV).shifted(steps()),
    "time_table": lambda: D.TimeMLP(16, D.TableEmbedding(20, 16)).to(DEV)(steps()),
    "sine": lambda: D.SinePosition(16).to(DEV)(D.PatchEmbed().to(DEV)(img())),
    "window": lambda: D.WindowAttention().to(DEV)(tokens()),
    "window_continuous": lambda: D.WindowAttention(bias=D.ContinuousBias).to(DEV)(tokens()),
    "window_shift": lambda: D.WindowAttention(shift=1).to(DEV)(tokens()),
    "window_static": lambda: D.StaticShiftAttention(4, shift=1).to(DEV)(tokens()),
    "masking": lambda: masking(False),
    "masking_structured": lambda: masking(True),
}
