import torch
from augment_modules import *

DEV = torch.device("cuda:0")


def images(n=4, size=16):
    return torch.rand(n, 3, size, size, device=DEV)


def labels(n=4):
    return torch.randint(0, 10, (n,), device=DEV)


def brightness(what):
    m = RandomBrightness(0.3).to(DEV)
    m(images())
    m(images())
    return getattr(m, what)()


def rotation_points():
    m = RandomRotation(20.0).to(DEV)
    m._params = m.generate_parameters(images())
    return m.transform_points(torch.rand(4, 7, 2, device=DEV))


def sequence():
    return AugmentationSequential(RandomBrightness(), RandomGaussianNoise(), RandomPlanckian(), random_apply=2).to(DEV)


CALLS = {
    "brightness": lambda: brightness("summary"),
    "histogram": lambda: brightness("histogram"),
    "planckian": lambda: RandomPlanckian().to(DEV)(images()),
    "rotation": lambda: RandomRotation().to(DEV)(images()),
    "rotation_points": rotation_points,
    "blur": lambda: RandomGaussianBlur().to(DEV)(images()),
    "blur_separable": lambda: RandomGaussianBlur(separable=True).to(DEV)(images()),
    "noise": lambda: RandomGaussianNoise().to(DEV)(images()),
    "noise_seeded": lambda: RandomGaussianNoise(seed=3).to(DEV)(images()),
    "mixup_batch": lambda: BatchMixUp().to(DEV)(images(), labels()),
    "mixup_sample": lambda: SampleMixUp().to(DEV)(images(), labels()),
    "cutmix": lambda: CutMix().to(DEV)(images(), labels()),
    "normalize": lambda: Normalize([0.4, 0.4, 0.4], [0.2, 0.2, 0.2]).to(DEV)(images()),
    "denormalize": lambda: Denormalize([0.4, 0.4, 0.4], [0.2, 0.2, 0.2]).to(DEV)(images()),
    "sequential": lambda: sequence()(images()),
    "update_weights": lambda: sequence().update_weights(images(), torch.rand(3, device=DEV)),
}
