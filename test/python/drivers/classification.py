import os
import tempfile

import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

from classification import *

DEV = "cuda:0"


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(8, 5))


def batch(n=6):
    return torch.randn(n, 3, 8, 8, device=DEV), torch.randint(0, 5, (n,), device=DEV)


def loader():
    return DataLoader(TensorDataset(torch.randn(12, 3, 8, 8), torch.randint(0, 5, (12,))), batch_size=6)


def nccl(call):
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    return call()


def ema(device):
    model = net().to(DEV)
    averaged = ModelEma(model, device=device)
    averaged.update(model)


def trained(opt):
    trainer = Trainer(net(), DEV, opt=opt, clip_grad=1.0)
    return trainer, trainer.train_one_epoch(loader())


def resumed():
    trainer, _ = trained("adamw")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "last.pth")
        torch.save({"model": trainer.model.state_dict(), "optimizer": trainer.optimizer.state_dict(), "epoch": 3}, path)
        other = Trainer(net(), DEV, opt="adamw")
        assert resume(other, path) == 3
        other.train_one_epoch(loader())


def confusion():
    mat = ConfusionMatrix(5)
    for _ in range(2):
        x, y = batch()
        mat.update(y, net().to(DEV)(x).argmax(1))
    mat.recalls()


def mixed():
    x, y = batch()
    mix = Mixup(num_classes=5)
    x, perm, lam = mix.mix(x)
    mix.pairwise_loss(FocalLoss([0.2] * 5).to(DEV), net().to(DEV)(x), y, perm, lam).backward()


def knn():
    backbone = net().to(DEV)
    data = DataLoader(TensorDataset(torch.randn(12, 3, 8, 8), torch.arange(12) % 5), batch_size=6)
    return KnnEvaluator(backbone).fit(data, [i % 5 for i in range(12)])


def criterion(made):
    x, y = batch()
    made.to(DEV)(net().to(DEV)(x), y).backward()


CALLS = {
    "accuracy": lambda: accuracy(torch.randn(6, 5, device=DEV), batch()[1], (1, 5)),
    "mix": mixed,
    "mixup": lambda: Mixup(num_classes=5)(*batch()),
    "normalize": lambda: GpuNormalize()(torch.randint(0, 255, (2, 3, 8, 8), device=DEV, dtype=torch.uint8)),
    "denormalize": lambda: GpuNormalize().denormalize(batch()[0]),
    "focal": lambda: criterion(FocalLoss([0.1, 0.2, 0.3, 0.2, 0.2])),
    "balanced": lambda: criterion(ClassBalancedLoss([10, 20, 30, 5, 1])),
    "ema": lambda: ema(None),
    "ema_host": lambda: ema("cpu"),
    "confusion": confusion,
    "ece": lambda: expected_calibration_error(torch.randn(20, 5, device=DEV), torch.randint(0, 5, (20,), device=DEV)),
    "reliability": lambda: reliability_histogram(torch.randn(20, 5, device=DEV)),
    "predict": lambda: predict(net().to(DEV), loader()),
    "export": lambda: export_scores(net().to(DEV), loader()),
    "temperature": lambda: TemperatureScaling(net()).to(DEV)(batch()[0]),
    "calibrate": lambda: TemperatureScaling(net()).to(DEV).calibrate(loader()),
    "neighbours": lambda: knn().neighbours(batch()[0]),
    "knn": lambda: knn().predict(batch()[0], 5),
    "train": lambda: trained("sgd"),
    "train_adagrad": lambda: trained("adagrad"),
    "validate": lambda: trained("sgd")[0].validate(loader()),
    "reduce": lambda: nccl(lambda: reduce_metrics(torch.ones((), device=DEV), 3, 6)),
    "resume": resumed,
}
