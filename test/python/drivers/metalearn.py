import torch
import torch.nn.functional as F
from metalearn import *

dev = "cuda:0"


def net():
    return FewShotNet().to(dev)


def sampler(device=dev):
    data = torch.randn(20, 8, device=device)
    return EpisodeSampler(data, (torch.arange(20) % 5).to(device))


def task(device=dev):
    return sampler(device).sample()


def learner(name, **kwargs):
    return LEARNERS[name](FewShotNet(), InnerLoopConfig(**kwargs)).to(dev)


def mpp_stacked():
    m = learner("maml++")
    return m.stacked_loss([m(task()), m(task())])


def proto_loss():
    t = task()
    return ProtoLoss(3, 2).to(dev)(t.query_x, prototypes(t.support_x, t.support_y, 3))


def trans():
    t = task()
    return transductive_prototypes(t.support_x, t.support_y, t.query_x, 3)


def ridge(dual):
    t = task()
    return t.query_x @ ridge_head(t.support_x, t.support_y, 3, dual=dual)


def reptile(what):
    r = Reptile(net())
    before = r.snapshot()
    if what == "interpolate":
        r.interpolate(before, 0.5)
    if what == "restore":
        r.restore(before)


def metrics(what):
    m = MetaMetrics(2)
    model = net()
    for step in range(2):
        t = task()
        m.update(step, model(t.query_x), t.query_y)
    return getattr(m, what)()


CALLS = {
    "episodes": lambda: sampler().sample(),
    "maml": lambda: learner("maml")(task()).backward(),
    "maml_msl": lambda: learner("maml", multi_step_loss=True)(task(), epoch=3).backward(),
    "maml_fo": lambda: learner("maml", first_order=True)(task()).backward(),
    "mpp": lambda: learner("maml++", multi_step_loss=True)(task()).backward(),
    "mpp_stacked": mpp_stacked,
    "metasgd": lambda: learner("metasgd")(task()),
    "anil": lambda: learner("anil")(task()),
    "anil_fresh": lambda: ANIL(net(), InnerLoopConfig(), fresh_head=True)(task()),
    "cavia": lambda: CAVIA().to(dev).adapt(task())(task().query_x),
    "protos": lambda: prototypes(task().support_x, task().support_y, 3),
    "trans": trans,
    "proto_loss": proto_loss,
    "ridge": lambda: ridge(False),
    "ridge_dual": lambda: ridge(True),
    "reptile_interpolate": lambda: reptile("interpolate"),
    "reptile_restore": lambda: reptile("restore"),
    "accuracy": lambda: metrics("accuracy"),
    "ece": lambda: metrics("calibration_error"),
}
