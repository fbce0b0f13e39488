import torch
from torch import nn

import compress as C

D = torch.device("cuda:0")
S = C.QSpec(bits=4)


def x(*s):
    return torch.randn(*(s or (4, 8)), device=D)


def net():
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)).to(D)


def obs(kind, times=2):
    o = C.OBSERVERS.build(kind, S.with_(symmetric=kind != "minmax")).to(D)
    return [o(x()) for _ in range(times)]


def lsq(cls=C.LsqWeight):
    m = C.quantize_model(net(), S, cls)
    m(x()).sum().backward()


def act():
    m = net()
    C.attach_activation(m, S)
    return m(x())


def prune(name):
    p = C.PRUNERS.build(name)
    return p, p.prune_(net())


def reapply():
    p, m = prune("magnitude")
    return p.reapply_(m)


def gc(cls):
    c = cls()
    return [c.decompress(*c.compress("w", x())) for _ in range(2)]


def topk():
    c = C.TopKCompressor()
    return [c.compress("w", x()) for _ in range(2)]


def lora():
    return C.LoRA(nn.Linear(8, 4)).add("task").to(D)


CALLS = {
    "minmax": lambda: obs("minmax"),
    "channel": lambda: obs("channel"),
    "ema": lambda: obs("ema"),
    "hist": lambda: obs("histogram"),
    "percentile": lambda: obs("percentile"),
    "mse": lambda: obs("mse"),
    "lsq": lambda: lsq(),
    "lazy": lambda: lsq(C.LazyScale),
    "activation": lambda: act(),
    "unpack": lambda: C.unpack_nibbles(torch.randint(0, 255, (4,), device=D).to(torch.uint8)),
    "encode": lambda: C.codebook_encode(x()),
    "decode": lambda: C.codebook_decode(torch.randint(0, 16, (4, 8), device=D), x(4, 1)),
    "rotate": lambda: C.rotate(x()),
    "magnitude": lambda: prune("magnitude"),
    "reapply": lambda: reapply(),
    "nm": lambda: prune("nm"),
    "nm_legacy": lambda: prune("nm_legacy"),
    "movement": lambda: C.PRUNERS.build("movement").track(x(), x()).apply(x()),
    "lowrank": lambda: C.LowRank(nn.Linear(8, 4)).to(D)(x()),
    "gated": lambda: C.LowRank(nn.Linear(8, 4)).to(D).gated(x()),
    "lora": lambda: lora()(x()),
    "lora_task": lambda: lora()(x(), "task"),
    "merged": lambda: lora().merged()(x()),
    "merged_copy": lambda: lora().merged_copy(),
    "topk": lambda: topk(),
    "decompress": lambda: gc(C.TopKCompressor),
    "powersgd": lambda: gc(C.PowerSGD),
}
