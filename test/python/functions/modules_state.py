import weakref
from functools import lru_cache

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.parameter import Parameter


# ------------------------------------------------------------------ registries
MODELS = {}


def register(name):
    def wrap(cls):
        MODELS[name] = cls
        return cls
    return wrap


def build(cfg):
    cfg = dict(cfg)
    return MODELS[cfg.pop("type")](**cfg)


@register("mlp")
class MLP(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.layers = []
        for i, (a, b) in enumerate(zip(dims[:-1], dims[1:])):
            layer = nn.Linear(a, b)
            setattr(self, f"fc{i}", layer)
            self.layers.append(layer)

    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x))
        return x


@register("mlp_list")
class MLPList(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.layers = [nn.Linear(a, b) for a, b in zip(dims[:-1], dims[1:])]

    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x))  # raises
        return x


def case_registry_mlp():
    net = build({"type": "mlp", "dims": [3, 4, 2]}).to("cuda")
    return net(torch.randn(2, 3, device="cuda"))


def case_registry_mlp_list():
    net = build(dict(type="mlp_list", dims=[3, 4, 2])).to("cuda")
    return net(torch.randn(2, 3, device="cuda"))


class MultiScale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([Parameter(torch.ones(1)) for _ in range(3)])
        self.heads = nn.ModuleDict({"cls": nn.Linear(4, 2), "reg": nn.Linear(4, 1)})
        self.anchors = {"s": torch.tensor([1.0]), "m": torch.tensor([2.0])}

    def forward(self, feats):
        fused = sum(w * f for w, f in zip(self.weights, feats))
        out = {k: head(fused) for k, head in self.heads.items()}
        out["reg"] = out["reg"] * self.anchors["m"]  # raises
        return out


def case_parameter_list_and_dict():
    net = MultiScale().cuda()
    return net([torch.randn(2, 4).cuda() for _ in range(3)])


# ----------------------------------------------------------------- late creation
class LazyPrototype(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.enc = nn.Linear(dim, dim)
        self.proto = None

    def set_classes(self, n):
        self.proto = nn.Parameter(torch.zeros(n, self.enc.in_features))
        nn.init.normal_(self.proto)

    def forward(self, x):
        return self.enc(x) @ self.proto.t()  # raises


def case_classes_set_before_move():
    m = LazyPrototype(3)
    m.set_classes(5)
    m.to("cuda")
    m(torch.randn(2, 3, device="cuda"))


def case_classes_set_after_move():
    m = LazyPrototype(3).to("cuda")
    m.set_classes(5)
    return m(torch.randn(2, 3, device="cuda"))


class Finetuner:
    def __init__(self, backbone, device):
        self.backbone, self.device = backbone.to(device), device

    def replace_head(self, n):
        self.backbone.fc = nn.Linear(self.backbone.fc.in_features, n)
        return self

    def logits(self, x):
        return self.backbone(x.to(self.device))


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(4, 6)
        self.fc = nn.Linear(6, 1000)

    def forward(self, x):
        return self.fc(self.stem(x))  # raises


def case_new_head():
    ft = Finetuner(Backbone(), "cuda:1").replace_head(3)
    return ft.logits(torch.randn(2, 4)).argmax(1)


def case_new_head_then_all_to_device():
    net = Backbone()
    for p in net.parameters():
        p.requires_grad = False
    net.fc = nn.Linear(net.fc.in_features, 2)
    ft = Finetuner(net, "cuda:1")
    return ft.logits(torch.randn(2, 4)).softmax(-1).sum()


# ----------------------------------------------------------------- caches
class GridCache(nn.Module):
    def __init__(self):
        super().__init__()
        self.grids = {}

    def grid(self, h, w, device):
        key = (h, w)
        if key not in self.grids:
            ys, xs = torch.meshgrid(torch.arange(h, device=device), torch.arange(w, device=device), indexing="ij")
            self.grids[key] = torch.stack([xs, ys], -1).float()
        return self.grids[key]

    def forward(self, flow):
        return flow + self.grid(flow.shape[1], flow.shape[2], flow.device)  # raises


def case_grid_cache_one_card():
    g = GridCache()
    for _ in range(2):
        g(torch.zeros(1, 2, 3, 2, device="cuda"))


def case_grid_cache_cpu_first():
    g = GridCache()
    sanity = g(torch.zeros(1, 2, 3, 2))
    print(sanity.shape)
    g.cuda()
    return g(torch.zeros(1, 2, 3, 2).cuda())


@lru_cache(maxsize=None)
def hann(n, device):
    return torch.hann_window(n).to(device)


def case_cached_windows():
    for dev in (torch.device("cpu"), torch.device("cuda:0"), torch.device("cuda:1"), torch.device("cuda:0")):
        wave = torch.randn(2, 8, device=dev)
        spec = wave * hann(8, dev)
    return spec.abs().mean()


class MelFilter(nn.Module):
    hann_window, basis = {}, {}

    def forward(self, y):
        key = str(y.device)
        if key not in self.basis:
            self.basis[key] = torch.rand(5, 3).to(y.device)
            self.hann_window[key] = torch.hann_window(8).to(y.device)
        spec = torch.stft(y, 8, hop_length=4, window=self.hann_window[key], return_complex=True).abs()
        return torch.matmul(self.basis[key].t(), spec)


def case_mel_two_devices():
    mel = MelFilter()
    mel(torch.randn(1, 32).cuda(0))
    return mel(torch.randn(1, 32).cuda(1))


def case_stft_window():
    wav = torch.randn(1, 32).cuda()
    window = torch.hann_window(8)
    return torch.stft(wav, 8, window=window, return_complex=True)  # raises


# ----------------------------------------------------------------- hooks
class FeatureTap:
    def __init__(self, module):
        self.out = None
        ref = weakref.ref(self)

        def hook(mod, inp, out):
            ref().out = out.detach().cpu()

        self.handle = module.register_forward_hook(hook)


def gram(f):
    return f @ f.t() / f.numel()


def case_tapped_features():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).cuda()
    tap = FeatureTap(net[0])
    x, y = torch.randn(5, 3).cuda(), torch.randn(5, 3).cuda()
    net(x)
    style = gram(tap.out)
    out = net(y)
    content = out.pow(2).mean()
    return content + F.mse_loss(gram(out), gram(style))  # raises


def case_gradcam_hooks():
    grads, acts = [], []
    conv = nn.Conv2d(1, 2, 3, padding=1).cuda()
    conv.register_forward_hook(lambda m, i, o: acts.append(o))
    conv.register_full_backward_hook(lambda m, gi, go: grads.append(go[0]))
    img = torch.rand(1, 1, 4, 4, device="cuda", requires_grad=True)
    conv(img).mean().backward()
    w = grads[0].mean((2, 3), keepdim=True)
    cam = F.relu((w * acts[0]).sum(1))[0]
    heat = cam.detach().cpu().numpy()
    return heat / (heat.max() + 1e-8)


def case_steering_vector_hook():
    direction = torch.randn(4)
    layer = nn.Linear(4, 4).to("cuda")

    def add_direction(module, args, output):
        return output + 3.0 * direction  # raises

    handle = layer.register_forward_hook(add_direction)
    try:
        return layer(torch.randn(2, 4, device="cuda"))
    finally:
        handle.remove()


# ----------------------------------------------------------------- own _apply / to
class Normaliser(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean, self.std = torch.tensor(mean), torch.tensor(std)

    def _apply(self, fn):
        super()._apply(fn)
        self.mean, self.std = fn(self.mean), fn(self.std)
        return self

    def forward(self, x):
        return (x - self.mean) / self.std


def case_custom_apply():
    net = nn.Sequential(Normaliser([0.1, 0.2], [1.0, 2.0]), nn.Linear(2, 1))
    net.cuda()
    net(torch.zeros(3, 2).cuda())
    net.cpu()
    net(torch.zeros(3, 2))


class VectorQuantizerEMA(nn.Module):
    def __init__(self, n, d, decay=0.9):
        super().__init__()
        self.decay, self.n = decay, n
        embed = torch.randn(n, d)
        self.register_buffer("embed", embed)
        self.register_buffer("cluster_size", torch.zeros(n))
        self.ema_w = embed.clone()

    def forward(self, z):
        idx = torch.cdist(z, self.embed).argmin(1)
        enc = F.one_hot(idx, self.n).type(z.dtype)
        if self.training:
            self.cluster_size.mul_(self.decay).add_(enc.sum(0), alpha=1 - self.decay)
            self.ema_w = self.ema_w * self.decay + (1 - self.decay) * enc.t() @ z  # raises
            self.embed.copy_(self.ema_w / (self.cluster_size + 1e-5).unsqueeze(1))
        return z + (self.embed[idx] - z).detach()


def case_vq_inference():
    vq = VectorQuantizerEMA(4, 3).to("cuda").eval()
    return vq(torch.randn(6, 3, device="cuda"))


def case_vq_training():
    vq = VectorQuantizerEMA(4, 3).to("cuda").train()
    return vq(torch.randn(6, 3, device="cuda"))


class MemoryBank:
    """not a Module on purpose"""

    def __init__(self, size, dim):
        self.bank = torch.zeros(size, dim)
        self.ptr = 0

    def to(self, device):
        self.bank = self.bank.to(device)

    @torch.no_grad()
    def enqueue(self, x):
        n = x.size(0)
        self.bank[self.ptr:self.ptr + n] = x
        self.ptr = (self.ptr + n) % self.bank.size(0)


def case_memory_bank():
    bank = MemoryBank(8, 3)
    enc = nn.Linear(3, 3).cuda()
    bank.to(enc.weight.device)
    for _ in range(3):
        z = enc(torch.randn(2, 3).cuda())
        logits = z @ bank.bank.clone().t()
        bank.enqueue(z)
    return logits
