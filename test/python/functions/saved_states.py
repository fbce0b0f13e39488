import io
import os
import tempfile
from collections import OrderedDict
from copy import deepcopy

import torch
import torch.nn as nn


def make_net():
    return nn.Sequential(OrderedDict([
        ("body", nn.Linear(4, 4)), ("norm", nn.BatchNorm1d(4)), ("head", nn.Linear(4, 2))]))


def save_checkpoint(net, optimizer=None, epoch=0, **extra):
    buf = io.BytesIO()
    payload = {"model": net.state_dict(), "epoch": epoch, **extra}
    if optimizer is not None:
        payload["optimizer"] = optimizer.state_dict()
    torch.save(payload, buf)
    buf.seek(0)
    return buf


def one_step(net, opt, device):
    opt.zero_grad()
    net(torch.randn(3, 4, device=device)).sum().backward()
    opt.step()  # raises


def case_resume_in_place():
    net = make_net().to("cuda:0")
    opt = torch.optim.Adam(net.parameters())
    one_step(net, opt, "cuda:0")
    ckpt = torch.load(save_checkpoint(net, opt, 3), map_location="cpu")
    fresh = make_net().to("cuda:0")
    opt2 = torch.optim.Adam(fresh.parameters())
    fresh.load_state_dict(ckpt["model"])
    opt2.load_state_dict(ckpt["optimizer"])
    one_step(fresh, opt2, "cuda:0")


def case_resume_then_move():
    net = make_net()
    opt = torch.optim.Adam(net.parameters())
    one_step(net, opt, "cpu")
    ckpt = torch.load(save_checkpoint(net, opt, 3), map_location="cpu")
    fresh = make_net()
    opt2 = torch.optim.Adam(fresh.parameters())
    fresh.load_state_dict(ckpt["model"])
    opt2.load_state_dict(ckpt["optimizer"])
    fresh.to("cuda:0")
    one_step(fresh, opt2, "cuda:0")


class ModelEMA:
    """exponential moving average as in timm, the copy stays where it was made"""

    def __init__(self, model, decay=0.99, device=None):
        self.module = deepcopy(model).eval()
        self.decay = decay
        self.device = device
        if self.device is not None:
            self.module.to(device=device)

    @torch.no_grad()
    def update(self, model):
        for ema_v, model_v in zip(self.module.state_dict().values(), model.state_dict().values()):
            if self.device is not None:
                model_v = model_v.to(device=self.device)
            ema_v.copy_(self.decay * ema_v + (1. - self.decay) * model_v)  # raises


def case_ema_on_cpu():
    net = make_net().cuda()
    ema = ModelEMA(net, device="cpu")
    ema.update(net)


def case_ema_same_card():
    net = make_net().cuda(1)
    ema = ModelEMA(net)
    for _ in range(2):
        ema.update(net)
    ema.module(torch.ones(1, 4).cuda(1))


def case_ema_built_early():
    net = make_net()
    ema = ModelEMA(net)
    net.cuda()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    one_step(net, opt, "cuda")
    ema.update(net)


class ShadowEMA(object):
    def __init__(self, mu):
        self.mu = mu
        self.shadow = {}

    def register(self, module):
        for name, param in module.named_parameters():
            if param.requires_grad:
                self.shadow[name] = param.data.clone()

    def update(self, module):
        for name, param in module.named_parameters():
            if param.requires_grad:
                self.shadow[name].data = (1. - self.mu) * param.data + self.mu * self.shadow[name].data  # raises

    def state_dict(self):
        return self.shadow

    def load_state_dict(self, state_dict):
        self.shadow = state_dict


def case_shadow_ema():
    net = make_net().cuda()
    helper = ShadowEMA(0.9)
    helper.register(net)
    helper.update(net)


def case_shadow_ema_resumed():
    net = make_net().cuda()
    helper = ShadowEMA(0.9)
    helper.register(net)
    buf = save_checkpoint(net, ema=helper.state_dict())
    states = torch.load(buf, map_location=torch.device("cpu"))
    net.load_state_dict(states["model"])
    helper.load_state_dict(states["ema"])
    helper.update(net)


def case_load_pretrained_embeddings():
    vectors = torch.randn(7, 4)
    net = nn.Embedding(7, 4).to("cuda")
    net.weight.data.copy_(vectors)
    with torch.no_grad():
        net.weight[2] = torch.zeros(4)
        net.weight[torch.tensor([3, 4])] *= 0
    ids = torch.tensor([1, 2], device="cuda")
    assert net(ids).device.type == "cuda"


def case_load_pretrained_embeddings_assign():
    vectors = torch.randn(7, 4)
    net = nn.Embedding(7, 4).to("cuda")
    net.weight.data = vectors
    ids = torch.tensor([1, 2], device="cuda")
    return net(ids)  # raises


def strip_prefix(state, prefix="module."):
    return OrderedDict((k[len(prefix):] if k.startswith(prefix) else k, v) for k, v in state.items())


def case_strip_dataparallel_prefix():
    wrapped = nn.DataParallel(make_net().cuda(), device_ids=[0])
    blob = save_checkpoint(wrapped)
    net = make_net()
    net.load_state_dict(strip_prefix(torch.load(blob)["model"]))
    out = net(torch.randn(2, 4))
    assert not out.is_cuda


def case_merge_lora():
    base = nn.Linear(4, 4).to("cuda")
    adapter = {"lora_up.weight": torch.randn(4, 2), "lora_down.weight": torch.randn(2, 4), "alpha": torch.tensor(1.0)}
    path = os.path.join(tempfile.mkdtemp(), "lora.pt")
    torch.save(adapter, path)
    sd = torch.load(path)
    up, down = sd["lora_up.weight"], sd["lora_down.weight"]
    scale = sd["alpha"] / up.shape[1]
    with torch.no_grad():
        weight = base.weight
        weight = weight + scale * (up @ down)  # raises
        base.weight = nn.Parameter(weight)


def case_merge_lora_moved():
    base = nn.Linear(4, 4).to("cuda")
    up, down, alpha = torch.randn(4, 2), torch.randn(2, 4), torch.tensor(1.0)
    with torch.no_grad():
        delta = (up @ down).to(base.weight.device, base.weight.dtype)
        base.weight += alpha / 2 * delta


def average_checkpoints(blobs, device="cuda"):
    avg = None
    for blob in blobs:
        state = torch.load(blob, map_location="cpu")["model"]
        if avg is None:
            avg = state
        else:
            for k in avg:
                avg[k] = avg[k] + state[k]
    for k in avg:
        if avg[k].is_floating_point():
            avg[k] /= len(blobs)
    return avg


def case_checkpoint_averaging():
    nets = [make_net().cuda(i) for i in range(3)]
    state = average_checkpoints([save_checkpoint(n) for n in nets])
    model = make_net().cuda()
    model.load_state_dict(state)


def case_checkpoint_averaging_two_cards():
    nets = [make_net().cuda(i) for i in range(2)]
    blobs = [save_checkpoint(n) for n in nets]
    loaded = [torch.load(b)["model"] for b in blobs]
    merged = {}
    for key in loaded[0]:
        merged[key] = sum(s[key] for s in loaded) / 2  # raises
    return merged


def case_prototypes_saved_on_other_card():
    buf = io.BytesIO()
    torch.save({"protos": torch.randn(3, 4, device="cuda:1"), "classes": ["a", "b", "c"]}, buf)
    buf.seek(0)
    bank = torch.load(buf)
    enc = nn.Linear(4, 4).cuda()
    feats = enc(torch.randn(2, 4).cuda())
    dist = torch.cdist(feats, bank["protos"])  # raises
    return [bank["classes"][i] for i in dist.argmin(1).tolist()]


def case_prototypes_remapped():
    buf = io.BytesIO()
    torch.save({"protos": torch.randn(3, 4, device="cuda:1")}, buf)
    buf.seek(0)
    bank = torch.load(buf, map_location=lambda storage, loc: storage.cuda(0))
    feats = nn.Linear(4, 4).cuda()(torch.randn(2, 4).cuda())
    return torch.cdist(feats, bank["protos"]).argmin(1)
