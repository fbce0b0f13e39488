from __future__ import annotations
from dataclasses import dataclass
import io
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn import functional as F


@dataclass(slots=True, kw_only=True)
class ModelArgs:
    dim: int = 8
    n_layers: int = 2
    vocab: int = 13
    max_seq: int = 16


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class KVCache(nn.Module):
    def __init__(self, bsz, args: ModelArgs, device=None):
        super().__init__()
        shape = (bsz, args.max_seq, args.dim)
        self.register_buffer("k", torch.zeros(shape, device=device), persistent=False)
        self.register_buffer("v", torch.zeros(shape, device=device), persistent=False)

    def update(self, pos, k, v):
        self.k[:, pos] = k  # raises
        self.v[:, pos] = v
        return self.k, self.v


class Layer(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.norm, self.qkv = RMSNorm(args.dim), nn.Linear(args.dim, 3 * args.dim, bias=False)
        self.cache: KVCache | None = None

    def forward(self, x, pos, mask):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        if self.cache is not None:
            k, v = self.cache.update(pos, k, v)
            scores = q @ k.mT
            scores = scores + mask[pos]
        else:
            scores = q @ k.mT + mask[:x.size(1), :x.size(1)]
        return x + scores.softmax(-1) @ v


class Llamaish(nn.Module):
    def __init__(self, args=ModelArgs()):
        super().__init__()
        self.args = args
        self.tok = nn.Embedding(args.vocab, args.dim)
        self.layers = nn.ModuleList(Layer(args) for _ in range(args.n_layers))
        self.out = nn.Linear(args.dim, args.vocab)
        self.register_buffer("mask", torch.full((args.max_seq,) * 2, float("-inf")).triu(1), persistent=False)

    def setup_caches(self, bsz, device=None):
        for layer in self.layers:
            layer.cache = KVCache(bsz, self.args, device)

    def forward(self, ids, pos=None):
        h = self.tok(ids)  # raises
        for l in self.layers:
            h = l(h, pos, self.mask)
        return self.out(h)


# clean
def case_cached_decoding():
    m = Llamaish().cuda().eval()
    m.setup_caches(1, device="cuda")
    ids = torch.tensor([[1]], device="cuda")
    with torch.inference_mode():
        for t in range(3):
            lg = m(ids[:, -1:], pos=torch.tensor([t], device="cuda"))
            ids = torch.cat([ids, lg[:, -1].argmax(-1, keepdim=True)], 1)
    return ids.tolist()


# broken
def case_caches_made_after_the_move():
    # an indexed write (index_put_) of a 3-d value, unlike a sliced one, is no copy
    m = Llamaish().to("cuda").eval()
    m.setup_caches(1)
    with torch.no_grad():
        h = m.tok(torch.tensor([[1]], device="cuda"))
        layer = m.layers[0]
        q, k, v = layer.qkv(layer.norm(h)).chunk(3, -1)
        k, v = layer.cache.update(torch.tensor([0]), k, v)
        return (q @ k.mT).softmax(-1) @ v


# broken
def case_assign_brings_host_parameters():
    m = Llamaish().cuda()
    buf = io.BytesIO()
    torch.save(m.state_dict(), buf)
    buf.seek(0)
    sd = torch.load(buf, map_location="cpu", weights_only=True, mmap=False)
    m.load_state_dict(sd, assign=True)
    return m(torch.randint(0, 13, (1, 4), device="cuda"))


# clean
def case_meta_then_empty_then_load():
    ref = Llamaish()
    with torch.device("meta"):
        m = Llamaish()
    m.to_empty(device="cuda")
    m.load_state_dict(ref.state_dict())
    m.mask.copy_(ref.mask)
    return m(torch.tensor([[3, 4]]).to("cuda")).norm().item()


# broken
def case_functional_call_with_host_state():
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh()).cuda()
    fast = {k: v.detach().cpu() - .1 for k, v in net.named_parameters()}
    x = torch.randn(2, 4, device="cuda")
    return functional_call(net, fast, (x,))  # raises


# clean
def case_ensemble_by_vmap():
    nets = [nn.Linear(4, 2).cuda() for _ in range(3)]
    params, buffers = stack_module_state(nets)
    base = nn.Linear(4, 2, device="meta")
    x = torch.randn(5, 4).cuda()
    ys = vmap(lambda p, b: functional_call(base, (p, b), (x,)))(params, buffers)
    picked = torch.where(ys > 0, ys, torch.tensor(0.))     # 0-dim host value: legal since 2.0
    return picked.sum().item()
