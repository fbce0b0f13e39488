from distilled_students import *
import tempfile


def net():
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))


def x(d=4):
    return torch.randn(5, d, device="cuda")


def loader():
    return [(torch.randn(5, 4), torch.randint(3, (5,))) for _ in range(2)]


def saved(obj):
    path = tempfile.mktemp()
    torch.save(obj, path)
    return path


def drive_kd():
    KDLoss().to("cuda")(x(), x())


def drive_kd_weights():
    KDLoss(class_weights=[1.0, 2.0, 1.0, 1.0]).to("cuda")(x(), x())


def drive_rkd():
    RelationalLoss().to("cuda")(x(), x())


def drive_angular():
    AngularLoss().to("cuda")(x(), x())


def drive_mimic():
    FeatureMimic([4, 4], [6, 4]).to("cuda")([x(), x()], [x(6), x()])


def taps(offload):
    s, t = net().to("cuda"), net().to("cuda")
    a, b = FeatureTap(s, ["0", "2"]), FeatureTap(t, ["0", "2"], offload=offload)
    inp = x()
    s(inp), t(inp)
    a.close()
    b.close()
    return a.matching_loss(b)


def drive_taps():
    taps(False)


def drive_taps_offload():
    taps(True)


def drive_ema():
    m = net().to("cuda")
    e = ShadowEMA(m)
    e.update(m)
    e.copy_to(m)


def drive_trainer_ema():
    Trainer(net(), net, saved(net().state_dict()), ema=True).fit(loader())


def drive_center():
    c = DinoCenter(4).to("cuda")
    c(x())
    c.resume_into(saved(c.state_dict()))
    c(x())


def drive_center_resume():
    c = DinoCenter(4).to("cuda")
    c.resume(saved(c.state_dict()))
    c(x())


def drive_mixup():
    mixup(x(), torch.randint(3, (5,), device="cuda"))


def drive_mixup_elementwise():
    mixup_elementwise(x())


def drive_trainer():
    t = Trainer(net(), net, saved(net().state_dict()))
    t.fit(loader())
    t.evaluate(loader())


def drive_trainer_no_ckpt():
    Trainer(net(), net).fit(loader())


def drive_trainer_hard():
    Trainer(net(), net, saved(net().state_dict())).fit(loader(), distill=False)
