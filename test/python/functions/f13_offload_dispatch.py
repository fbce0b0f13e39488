import contextlib
import inspect
import math
from collections import OrderedDict
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

import torch
import torch.nn as nn
import torch.nn.functional as F


def _send(obj, device):
    if isinstance(obj, (tuple, list)):
        return type(obj)(_send(o, device) for o in obj)
    if isinstance(obj, Mapping):
        return type(obj)({k: _send(v, device) for k, v in obj.items()})
    if not hasattr(obj, "to"):
        return obj
    return obj.to(device)


class AlignHook:
    """Moves a module's inputs to the device that the map gives it."""

    def __init__(self, execution_device):
        self.execution_device = execution_device

    def attach(self, module):
        module.to(self.execution_device)
        old = module.forward

        def new_forward(*args, **kwargs):
            args, kwargs = _send(args, self.execution_device), _send(kwargs, self.execution_device)
            return old(*args, **kwargs)

        module.forward = new_forward
        return module


def _dispatch(model, device_map: Dict[str, Union[int, str]]):
    modules = dict(model.named_modules())
    for name, device in device_map.items():
        AlignHook(torch.device(device) if isinstance(device, str) else torch.device("cuda", device)).attach(modules[name])
    model.hf_device_map = device_map
    return model


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x, residual=None):
        y = self.fc2(F.gelu(self.fc1(x)))
        return y if residual is None else y + residual


class Tower(nn.Module):
    def __init__(self, dim=8, n=4, tied=False):
        super().__init__()
        self.embed = nn.Embedding(16, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(n))
        self.norm = nn.LayerNorm(dim)
        self.tied = tied
        self.logit_scale = nn.Parameter(torch.ones(dim))
        self.head = nn.Linear(dim, 16)

    def forward(self, ids, skip=False):
        x = self.embed(ids)
        first = x
        for block in self.blocks:
            x = block(x, residual=x)
        x = self.norm(x)
        if skip:
            x = x + first  # raises
        return self.head(x)


_MAP = {"embed": 0, "blocks.0": 0, "blocks.1": 1, "blocks.2": 2, "blocks.3": 3, "norm": 3, "head": 3}


def dispatched_tower():
    tower = _dispatch(Tower(), _MAP)
    logits = tower(torch.randint(0, 16, (2, 5)))
    loss = F.cross_entropy(logits.flatten(0, 1), torch.randint(0, 16, (10,)).to(logits.device))
    loss.backward()
    return loss.item()


def dispatched_tower_with_a_long_skip():
    tower = _dispatch(Tower(), _MAP)
    return tower(torch.randint(0, 16, (2, 5)), skip=True)


def dispatched_tower_on_one_gpu_with_a_long_skip():
    tower = _dispatch(Tower(), {k: "cuda:2" for k in _MAP})
    return tower(torch.randint(0, 16, (2, 5)), True).device.index


def tied_head_by_hand():
    tower = _dispatch(Tower(), _MAP)
    ids = torch.randint(0, 16, (2, 5), device="cuda:0")
    hidden = tower.embed(ids)
    for block in tower.blocks:
        hidden = block(hidden)
    logits = F.linear(hidden.to(tower.embed.weight.device), tower.embed.weight)
    return logits.softmax(-1).argmax(-1).eq(ids).float().mean().item()


def image_features_join_text_embeddings():
    vision = nn.Linear(6, 8).to("cuda:1")
    tower = _dispatch(Tower(), _MAP)
    images = torch.randn(4, 6)
    splits = [1, 3]
    features = vision(images.to(vision.weight.device))
    features = torch.split(features, splits, dim=0)
    embeds = []
    for i, ids in enumerate(torch.randint(0, 16, (2, 5))):
        text = tower.embed(ids)
        embeds.append(torch.cat((text[:2], features[i], text[2:])))  # raises
    return [e.shape for e in embeds]


class BaseDevice(nn.Module):
    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device


class TextEncoder(BaseDevice):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(16, 8)

    def forward(self, ids):
        return self.emb(ids)


class Decoder(BaseDevice):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)
        self.config = {"shift": 0.1, "mean": [0.0] * 8, "std": [1.0] * 8}

    def forward(self, z):
        return self.net(z)


class Pipeline:
    """Models visit the GPU one after another; between calls they wait on the CPU."""

    def __init__(self, text_encoder, decoder):
        self.text_encoder, self.decoder = text_encoder, decoder
        self._execution = None

    @property
    def device(self):
        return self.text_encoder.device

    @property
    def execution_device(self):
        return self._execution or self.device

    def enable_offload(self, gpu=0):
        self._execution = torch.device(f"cuda:{gpu}")
        for m in (self.text_encoder, self.decoder):
            m.to("cpu")

    @contextlib.contextmanager
    def _on_gpu(self, module):
        module.to(self.execution_device)
        try:
            yield module
        finally:
            if self._execution is not None:
                module.to("cpu")

    def encode(self, ids):
        with self._on_gpu(self.text_encoder) as enc:
            return enc(ids.to(self.execution_device))

    def latents(self, n, device):
        return torch.randn(n, 8, generator=torch.Generator().manual_seed(0)).to(device)

    def __call__(self, ids, noise_device=None):
        prompt = self.encode(ids).mean(1)
        z = self.latents(len(ids), noise_device or self.execution_device)
        z = z + prompt  # raises
        with self._on_gpu(self.decoder) as dec:
            out = dec(z)
        return out.detach().cpu().numpy()


def pipeline_with_offload():
    pipe = Pipeline(TextEncoder(), Decoder())
    pipe.enable_offload()
    return pipe(torch.randint(0, 16, (2, 3)))


def pipeline_noise_on_its_own_device():
    pipe = Pipeline(TextEncoder(), Decoder())
    pipe.enable_offload(gpu=1)
    return pipe(torch.randint(0, 16, (2, 3)), noise_device=pipe.device)


def decode_with_latent_statistics():
    decoder = Decoder().to("cuda:1")
    z = torch.randn(2, 8, device="cuda:0")
    mean = torch.tensor(decoder.config["mean"]).view(1, -1).to(decoder.device)
    std = 1.0 / torch.tensor(decoder.config["std"]).view(1, -1).to(decoder.device)
    z = z / std + mean  # raises
    return decoder(z.to(decoder.device))


def decode_with_latent_statistics_of_the_latents():
    decoder = Decoder().to("cuda:1")
    z = torch.randn(2, 8, device="cuda:0")
    mean, std = (torch.tensor(decoder.config[k]).view(1, -1).to(z.device, z.dtype) for k in ("mean", "std"))
    return decoder((z * std + mean).to(decoder.device))


class PagedParams:
    """Parameters sleep on the CPU; `fetch` brings one layer at a time."""

    def __init__(self, layers, device):
        self.layers, self.device = layers, device

    @contextlib.contextmanager
    def fetch(self, i):
        store = {n: p.data for n, p in self.layers[i].named_parameters()}
        for n, p in self.layers[i].named_parameters():
            p.data = store[n].to(self.device)
        yield self.layers[i]
        for n, p in self.layers[i].named_parameters():
            p.data = store[n]

    def forward(self, x):
        for i in range(len(self.layers)):
            with self.fetch(i) as layer:
                x = torch.relu(layer(x))  # raises
        return x


def paged_layers():
    layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
    with torch.no_grad():
        return PagedParams(layers, "cuda").forward(torch.randn(2, 4, device="cuda")).sum().item()


def paged_layers_with_running_statistics():
    layers = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4, affine=False).eval()) for _ in range(3))
    with torch.no_grad():
        return PagedParams(layers, "cuda").forward(torch.randn(2, 4, device="cuda")).sum().item()


class InfTracker:
    def __init__(self, params, device="cpu", offload=True):
        self.params = params
        self.overflow = torch.zeros(1, dtype=torch.bool, device="cuda:0")
        self.grads = [p.grad.to(device) if offload else p.grad for p in params]

    def check(self):
        for g in self.grads:
            self.overflow += g.isnan().any() | g.isinf().any()
        return bool(self.overflow)

    def norms(self):
        local = torch.stack([g.float().norm() for g in self.grads])
        return local + self.overflow * 1e6  # raises


def overflow_check_of_offloaded_gradients():
    net = nn.Linear(3, 2).cuda()
    net(torch.randn(4, 3).cuda()).sum().backward()
    return InfTracker(list(net.parameters())).check()


def gradient_norms_with_an_overflow_flag():
    net = nn.Linear(3, 2).cuda()
    net(torch.randn(4, 3).cuda()).sum().backward()
    tracker = InfTracker(list(net.parameters()), offload=torch.cuda.is_available())
    return [n.item() for n in tracker.norms()]
