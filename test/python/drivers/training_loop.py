import numpy as np
import torch
from torch import nn

import training_loop as L

D = "cuda:0"


def net():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).to(D)


def batches(n=3):
    return [{"inputs": torch.randn(5, 6, device=D), "labels": torch.randint(3, (5,), device=D)} for _ in range(n)]


def trained(*callbacks, **args):
    trainer = L.Trainer(net(), L.TrainingArguments(**args), callbacks)
    trainer.train(batches())
    return trainer


def graded():
    model = net()
    model(torch.randn(5, 6, device=D)).sum().backward()
    return model


def features(*lengths):
    return [{"input_ids": torch.randint(2, 20, (n,), device=D)} for n in lengths]


def scored():
    return torch.randn(7, 3, device=D), torch.randint(3, (7,), device=D)


def reset_confusion():
    metric = L.ConfusionMetric(3).to(D)
    metric(*scored())
    metric.reset()
    metric(*scored())


def averaged_mean():
    metric = L.MeanMetric().to(D)
    metric(torch.randn(4, device=D))
    metric.reset()
    metric(torch.randn(4, device=D))


def calibration():
    metric = L.CalibrationMetric().to(D)
    metric(*scored())
    metric(*scored())


def history(name):
    callback = L.LossHistory()
    trained(callback)
    getattr(callback, name)()


def ema(offload, act):
    model = net()
    average = L.SwappedAverage(model, offload=offload)
    average.store(model)
    getattr(average, act)(model)


def record(center):
    model = net()
    recorder = L.ActivationRecorder(model, center=center)
    model(torch.randn(5, 6, device=D))
    recorder.remove()


def weigh(learned):
    L.UncertaintyWeighting(["a", "b"], learned).to(D)({k: torch.ones((), device=D) for k in "ab"})


def scaled():
    model, scaler = net(), L.GradScaler()
    scaler.scale(model(torch.randn(5, 6, device=D)).sum()).backward()
    scaler.unscale_(model.parameters())
    L.per_layer_clip(model, 1.0)


def scheduled():
    trainer = L.Trainer(net(), L.TrainingArguments())
    schedule = L.WarmupCosine(trainer.optimizer, 2, 6)
    for batch in batches():
        trainer.training_step(batch)
        trainer.optimizer.step()
        schedule.step()


CALLS = {
    "pad": lambda: L.PaddingCollator()(features(4, 6)),
    "pad_labels": lambda: L.PaddingCollator()([{"labels": torch.zeros(n, device=D)} for n in (2, 4)]),
    "masking": lambda: L.MaskingCollator(19, 20, 0.5)(features(6, 6)),
    "spans": lambda: L.SpanCollator(19, 20)(features(6, 6)),
    "smoother": lambda: L.LabelSmoother()(*scored()),
    "smoother_prior": lambda: L.LabelSmoother(prior=[0.2, 0.3, 0.5])(*scored()),
    "confusion": lambda: L.ConfusionMetric(3).to(D)(*scored()),
    "confusion_reset": reset_confusion,
    "macro": lambda: L.MacroAccuracy(3, [0.2, 0.3, 0.5]).to(D)(*scored()),
    "mean": averaged_mean,
    "calibration": calibration,
    "ema_on_device": lambda: ema(False, "update"),
    "ema_offload": lambda: ema(True, "update"),
    "ema_offload_copy": lambda: ema(True, "copy_to"),
    "ema_distance": lambda: ema(True, "distance"),
    "ema_drift": lambda: ema(False, "drift"),
    "history_smoothed": lambda: history("smoothed"),
    "history_spread": lambda: history("spread"),
    "histogram": lambda: trained(L.HistogramCallback()),
    "best": lambda: trained(L.BestKeeper(), class_weights=[1.0, 2.0, 1.0], ema_decay=0.9),
    "record": lambda: record(False),
    "record_center": lambda: record(True),
    "scaler": scaled,
    "noise": lambda: L.add_gradient_noise(graded().parameters()),
    "conflicts": lambda: L.project_conflicts([torch.randn(4, 2, device=D) for _ in range(3)]),
    "uncertainty": lambda: weigh(True),
    "uncertainty_fixed": lambda: weigh(False),
    "schedule": scheduled,
    "evaluate": lambda: trained().evaluate(batches()),
    "predict_scaled": lambda: trained().predict(batches(), np.ones(3, dtype=np.float32)),
}
