import torch
from knowledge_distillation import *

D = "cuda"
C = DistillConfig()


def nets():
    return ConvNet(C.width, C.classes), ConvNet(C.teacher_width, C.classes)


def images(n=4, device=D):
    return torch.randn(n, 3, 8, 8, device=device)


def batch():
    return move({"images": images(device="cpu"), "target": torch.tensor([0, 1, 2, 3]), "index": torch.arange(4)}, D)


def loss(name):
    module = LOSSES[name](C).to(D)
    return lambda: module(torch.randn(4, 5, device=D), torch.randn(4, 5, device=D), torch.tensor([0, 1, 2, 3], device=D))


def features(projector, store, kind=FeatureLoss):
    student, teacher = (net.to(D) for net in nets())
    taps = FeatureRecorder(student, C.taps), FeatureRecorder(teacher, C.taps, store)
    criterion = kind(projector).to(D)
    student(images()), teacher(images())
    return criterion(taps[0].pop(), taps[1].pop())


def bank(kind):
    module, index = kind(C, 6).to(D), torch.tensor([0, 3, 5], device=D)
    for _ in range(2):
        module(torch.randn(3, 6, device=D), torch.randn(3, 6, device=D), index)


def distill(kind):
    each = batch()
    teacher = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 5))
    kind(nets()[0], teacher, C).to(D)(each["images"], each["target"], each["index"]).backward()


def cached(agreement):
    each = batch()
    distiller = CachedDistiller(*nets(), C).to(D).warm_up(each["images"], each["index"])
    if agreement:
        return distiller.agreement(each["images"], each["index"])
    distiller(each["images"], each["target"], each["index"]).backward()


def top():
    cache, index = LogitCache(), torch.arange(3, device=D)
    cache.write_top(index, torch.randn(3, 5, device=D))
    cache.read(index)


def mean_teacher(early, offload=False):
    student = nets()[0]
    if early:
        slow = MeanTeacher(student, offload=offload)
        student.to(D)
    else:
        slow = MeanTeacher(student.to(D), offload=offload)
    slow.update(student)


def centred(strict):
    first = CentredTeacher(5).to(D)
    first(torch.randn(3, 5, device=D))
    second = CentredTeacher(5).to(D).resume(first.save(), strict)
    second(torch.randn(3, 5, device=D))


def sequence(name):
    lengths = torch.tensor([2, 4, 3], device=D)
    getattr(SequenceDistiller(), name)(torch.randn(3, 4, 5, device=D), torch.randn(3, 4, 5, device=D), lengths)


CALLS = {
    "kl": lambda: loss("kl")(),
    "dkd": lambda: loss("dkd")(),
    "grouped": lambda: loss("grouped")(),
    "rkd": lambda: loss("rkd")(),
    "rkd_upper": lambda: loss("rkd_upper")(),
    "features": lambda: features(Projector((4, 8)), None),
    "features_lazy": lambda: features(Projector(), None),
    "features_stored": lambda: features(Projector((4, 8)), "cpu"),
    "attention": lambda: features(Projector(), "cpu", AttentionTransfer),
    "bank": lambda: bank(ContrastiveBank),
    "bank_weighted": lambda: bank(WeightedContrastiveBank),
    "distill": lambda: distill(Distiller),
    "distill_complete": lambda: distill(CompleteDistiller),
    "cached": lambda: cached(False),
    "agreement": lambda: cached(True),
    "top": top,
    "mean_early": lambda: mean_teacher(True),
    "mean": lambda: mean_teacher(False),
    "mean_offload": lambda: mean_teacher(False, True),
    "centred": lambda: centred(True),
    "centred_loose": lambda: centred(False),
    "invert": lambda: NoiseInverter(nets()[1].to(D)).run(3),
    "invert_reproducible": lambda: NoiseInverter(nets()[1].to(D), reproducible=True).run(3),
    "packed": lambda: sequence("packed_loss"),
    "masked": lambda: sequence("masked_loss"),
}
