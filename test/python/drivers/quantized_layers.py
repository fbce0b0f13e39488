import torch
import torch.nn as nn
import quantized_layers as Q

DEVICE = torch.device("cuda:1")


def batch(rows=4):
    torch.manual_seed(1)
    return torch.randn(rows, 6, device=DEVICE)


def linear():
    torch.manual_seed(0)
    return nn.Linear(6, 4).to(DEVICE)


def model():
    return nn.Sequential(nn.Linear(6, 5), nn.Sequential(nn.ReLU(), nn.Linear(5, 2)))


def fake(name, symmetric=True):
    layer = Q.FakeQuantize(Q.QuantConfig(observer=name, symmetric=symmetric)).to(DEVICE)
    layer(batch())
    return layer


def drive_minmax():
    fake("minmax", False)(batch().requires_grad_()).sum().backward()


def drive_ema():
    fake("ema")(batch())


def drive_channel():
    fake("channel_ema")


def drive_histogram():
    fake("histogram")(batch())


def drive_histogram_error():
    layer = fake("histogram")
    layer.observer.weighted_error(layer.observer.scale())


def drive_linear():
    layer = Q.QuantLinear(6, 4).to(DEVICE)
    layer(batch()).sum().backward()


def drive_sensitivity():
    Q.QuantLinear(6, 4).to(DEVICE).sensitivity()


def drive_packed():
    Q.PackedLinear.from_linear(linear())(batch())


def drive_packed_direct():
    Q.PackedLinear.from_linear(linear())(batch(), host=False)


def outlier():
    return Q.OutlierLinear(linear(), Q.QuantConfig()).calibrate([batch(), batch(2)])


def drive_outlier():
    outlier()(batch())


def drive_outlier_merged():
    outlier().merged(batch())


def gptq():
    made = Q.GroupQuantizer(linear(), Q.QuantConfig())
    made.add_batch(batch())
    return made


def drive_gptq():
    gptq().apply()(batch())


def drive_gptq_host():
    gptq().apply("host")(batch())


def drive_gptq_mixed():
    gptq().apply("mixed")


def drive_gptq_running():
    Q.GroupQuantizer(linear(), Q.QuantConfig()).add_batch_running(batch())


def record(net, value, reduce=None):
    recorder = Q.ActivationRecorder(reduce)
    with recorder.watching(net):
        net(value)
    return recorder


def drive_recorder_report():
    record(model().to(DEVICE), batch()).report()


def drive_recorder_noise_same():
    net = model().to(DEVICE)
    record(net, batch(), Q.offload).signal_to_noise(record(net, batch(), Q.offload), "0")


def drive_recorder_noise():
    net = model().to(DEVICE)
    record(net, batch(), Q.offload).signal_to_noise(record(net, batch()), "0")


def drive_learned():
    Q.LearnedStep(Q.QuantConfig()).to(DEVICE)(batch()).sum().backward()


def drive_learned_again():
    step = Q.LearnedStep(Q.QuantConfig()).to(DEVICE)
    step.reinitialise(batch())
    step(batch())


def drive_calibrator():
    Q.LegacyCalibrator(model().to(DEVICE), Q.QuantConfig()).calibrate([batch(), batch()])


def drive_calibrator_unmoved():
    Q.Calibrator(model().to(DEVICE), Q.QuantConfig(observer="ema")).calibrate([batch()])


def drive_restore():
    made = Q.LegacyCalibrator(model().to(DEVICE), Q.QuantConfig())
    made.calibrate([batch()])
    made.restore().calibrate([batch()])


def drive_drift():
    made = Q.LegacyCalibrator(model().to(DEVICE), Q.QuantConfig())
    made.calibrate([batch()])
    made.drift()
