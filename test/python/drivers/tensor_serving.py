import numpy as np
import torch
import torch.nn as nn

import tensor_serving as ts

DEV = torch.device("cuda", 0)
CFG = ts.ServingConfig()


def _model(device=DEV):
    return ts.TinyDecoder(CFG).to(device).eval()


def _requests(n=3):
    return [ts.Request(i, [2 + i, 3, 4, 5, 6][:3 + i % 3]) for i in range(n)]


def _x():
    return torch.randn(4, 3)


def drive_pipeline():
    run = ts.Pipeline(ts.Upload("cuda"), ts.Standardize([0.0, 1.0, 2.0], [1.0, 1.0, 2.0], "cuda:0"), ts.OutlierTag())
    return run(x=_x(), label="a")


def drive_clip_cold():
    return ts.Pipeline(ts.Upload("cuda"), ts.Clip())(x=_x())


def drive_clip_warm():
    run = ts.Pipeline(ts.Upload("cuda"), ts.Clip())
    for _ in range(3):
        run(x=_x())


def drive_last():
    batcher = ts.Batcher(CFG)
    tokens, lengths = batcher.pad(_requests(), DEV)
    return batcher.last(_model()(tokens), lengths)


def drive_masked_mean():
    batcher = ts.Batcher(CFG)
    tokens, lengths = batcher.pad(_requests(), DEV)
    return batcher.masked_mean(_model()(tokens), lengths)


def _cache():
    cache = ts.KVCache(3, 2, 4)
    _model()(torch.tensor([[2, 3], [3, 4], [4, 5]], device=DEV), cache)
    return cache


def drive_reorder():
    cache = _cache()
    cache.reorder([2, 0, 0])
    return _model()(torch.tensor([[1], [1], [2]], device=DEV), cache)


def drive_compact():
    _cache().compact([True, False, True])


def drive_rotary():
    table = ts.RotaryTable(4).to(DEV)
    table(torch.randn(2, 2, 5, 4, device=DEV))
    return table(torch.randn(2, 2, 3, 4, device=DEV), 4)


def drive_rotate_at():
    return ts.RotaryTable(4).to(DEV).rotate_at(torch.randn(3, 4, device=DEV), torch.tensor([0, 4, 2], device=DEV))


def drive_generate():
    return ts.Generator(_model(), [ts.RepetitionRule(), ts.BanRule([1, 2])]).generate([[2, 3], [4, 5]])


def drive_generate_sampled():
    return ts.Generator(_model(), seed=3).generate([[2, 3], [4, 5]])


def drive_generate_boost():
    return ts.Generator(_model(), [ts.BoostRule({3: 1.0, 5: -1.0})]).generate([[2, 3], [4, 5]])


def drive_score():
    return ts.Generator(_model()).score([2, 3], [[4, 5], [6]])


def drive_adapters():
    bank = ts.AdapterBank(nn.Linear(6, 5)).to(DEV)
    bank.load("a", {"down": np.ones((2, 6), np.float32), "up": np.ones((5, 2), np.float32)})
    return bank(torch.randn(2, 6, device=DEV), ["a", None])


def drive_adapters_random():
    bank = ts.AdapterBank(nn.Linear(6, 5)).to(DEV)
    bank.load_random("b")
    return bank(torch.randn(2, 6, device=DEV), ["b", None])


def _table():
    return ts.ShardedTable(10, 3, ["cuda:0", "cuda:1", "cuda:2"])


def drive_sharded():
    return _table()(torch.tensor([[0, 9], [4, 5]], device=DEV))


def drive_similar():
    return _table().similar(torch.randn(2, 3, device=DEV))


def drive_response_cache():
    cache, model = ts.ResponseCache(), _model()
    tokens = torch.tensor([[2, 3], [4, 5]], device=DEV)
    cache.through(tokens[:1], model)
    return cache.through(tokens, model)


def _shadow():
    return ts.ShadowMonitor(_model(), _model("cuda:1"))


def drive_agreement():
    return _shadow().agreement(torch.tensor([[2, 3], [4, 5]], device=DEV))


def drive_record():
    return _shadow().record(torch.tensor([[2, 3], [4, 5]], device=DEV))


def drive_server():
    server = ts.Server(ts.ServingConfig(devices=("cuda:1", "cuda:2")), ts.TinyDecoder(CFG))
    for request in _requests(6):
        server.batcher.submit(request)
    return server.step() + server.step()
