import io

import torch
from torch import nn
from trainer import *

torch.manual_seed(0)
D = "cuda:0"


def net():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def loader(n=4):
    return [{"inputs": torch.randn(5, 6), "targets": torch.randint(0, 3, (5,))} for _ in range(n)]


def fit(*callbacks, average=False, **options):
    return Trainer(net(), TrainerConfig(**options), callbacks).fit(loader(), average=average)


def backed(model, device=D):
    model(torch.randn(5, 6, device=device)).sum().backward()
    return model


def accumulate():
    model = net().to(D)
    sums = GradientAccumulator(model.parameters())
    backed(model)
    sums.collect()
    sums.write_back()


class Split(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8).to("cuda:0"), nn.Linear(8, 3).to("cuda:1")

    def forward(self, x):
        return self.b(self.a(x).to("cuda:1"))


def ema(device=None):
    model = net().to(D)
    average = ModelEma(model, device=device)
    average.update(model)


def checkpoint():
    first = Trainer(net(), TrainerConfig())
    first.fit(loader())
    stream = io.BytesIO()
    torch.save(first.state_dict(), stream)
    stream.seek(0)
    return stream


def resumed():
    trainer = Trainer(net(), TrainerConfig())
    trainer.resume(checkpoint())
    trainer.fit(loader())


def resumed_on_gpu():
    trainer = Trainer(net().to(D), TrainerConfig())
    trainer.resume(checkpoint())
    trainer.fit(loader())


def warm():
    trainer = Trainer(net(), TrainerConfig())
    trainer.warm_start(checkpoint())
    trainer.fit(loader())


def souped():
    trainer = Trainer(net().to(D), TrainerConfig())
    trainer.soup([checkpoint()])


def shadow_on_gpu():
    model = net().to(D)
    shadow = ShadowWeights(model, 0.9)
    shadow.update(model)


CALLS = {
    "fit": lambda: fit(LossTracker(), GradientHistograms()),
    "history": lambda: fit(LossHistory()),
    "spikes": lambda: fit(SpikeGuard()),
    "weights": lambda: fit(WeightHistograms()),
    "average": lambda: fit(average=True),
    "shadow": shadow_on_gpu,
    "classes": lambda: fit(class_counts=[3, 2, 5]),
    "accumulate": accumulate,
    "clip": lambda: clip_gradients(list(backed(net().to(D)).parameters()), 1.0),
    "clip_split": lambda: clip_gradients(list(backed(Split()).parameters()), 1.0),
    "norm_split": lambda: gradient_norm(list(backed(Split()).parameters())),
    "distill": lambda: Distiller(net(), net()).to(D)(torch.randn(5, 6, device=D)).backward(),
    "ema": ema,
    "ema_cpu": lambda: ema("cpu"),
    "resume": resumed,
    "resume_gpu": resumed_on_gpu,
    "warm": warm,
    "soup": souped,
    "evaluate": lambda: Trainer(net(), TrainerConfig()).evaluate(loader()),
    "predict": lambda: Trainer(net().to(D), TrainerConfig()).predict(loader()),
    "embed": lambda: list(Trainer(net(), TrainerConfig()).embed([Batch(torch.randn(5, 6), torch.zeros(5))])),
}
