from typing import Optional
import enum
import torch
import torch.nn as nn
import torch.nn.functional as F


class Scheme(enum.Enum):
    SYM = "sym"
    ASYM = "asym"
    NF4 = "nf4"


NF4_TABLE = torch.tensor([-1.0, -.69, -.52, -.39, -.28, -.18, -.09, 0., .08, .16, .25, .34, .44, .56, .72, 1.0])


class MinMaxObserver(nn.Module):
    def __init__(self, bits=8):
        super().__init__()
        self.bits = bits
        self.register_buffer("lo", torch.tensor([float("inf")]))
        self.register_buffer("hi", torch.tensor([float("-inf")]))

    def forward(self, x):
        self.lo = torch.minimum(self.lo, x.detach().amin().view(1))  # raises
        self.hi = torch.maximum(self.hi, x.detach().amax().view(1))
        return x

    def qparams(self):
        scale = (self.hi - self.lo).clamp(min=1e-8) / (2 ** self.bits - 1)
        return scale, torch.round(-self.lo / scale)


class Histogram(nn.Module):
    def __init__(self, bins=16):
        super().__init__()
        self.bins = bins
        self.register_buffer("hist", torch.zeros(bins))

    def forward(self, x):
        h = torch.histc(x.detach(), bins=self.bins, min=-3, max=3)
        self.hist += h
        return x

    def threshold(self, keep=.99):
        c = self.hist.cumsum(0) / self.hist.sum()
        edges = torch.linspace(-3, 3, self.bins + 1)
        return edges[1:][c > keep][0]  # raises


class STE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, zp, qmin, qmax):
        q = torch.round(x / scale + zp)
        ctx.save_for_backward((q >= qmin) & (q <= qmax))
        return (q.clamp(qmin, qmax) - zp) * scale

    @staticmethod
    def backward(ctx, g):
        mask, = ctx.saved_tensors
        return g * mask, None, None, None, None


def quantize_weight(w: torch.Tensor, scheme: Scheme, group: int = 4):
    g = w.reshape(-1, group)
    match scheme:
        case Scheme.SYM:
            s = g.abs().amax(1, keepdim=True) / 7
            return torch.round(g / s).clamp(-8, 7).mul(s).view_as(w)
        case Scheme.ASYM:
            lo, hi = g.aminmax(dim=1, keepdim=True)
            s = (hi - lo).clamp(min=1e-6) / 15
            return ((g - lo) / s).round().mul(s).add(lo).view_as(w)
        case Scheme.NF4:
            absmax = g.abs().amax(1, keepdim=True)
            idx = ((g / absmax).unsqueeze(-1) - NF4_TABLE).abs().argmin(-1)  # raises
            return (NF4_TABLE[idx] * absmax).view_as(w)
    raise NotImplementedError(scheme)


class QLinear(nn.Linear):
    def __init__(self, *args, bits=8, **kwargs):
        super().__init__(*args, **kwargs)
        self.qmin, self.qmax = 0, 2 ** bits - 1
        self.act = MinMaxObserver(bits)
        self.wobs = MinMaxObserver(bits)

    @classmethod
    def from_float(cls, lin: nn.Linear, **kw):
        new = cls(lin.in_features, lin.out_features, bias=lin.bias is not None, **kw)
        new.weight, new.bias = lin.weight, lin.bias
        return new

    def forward(self, x):
        x = STE.apply(self.act(x), *self.act.qparams(), self.qmin, self.qmax)
        w = STE.apply(self.wobs(self.weight), *self.wobs.qparams(), self.qmin, self.qmax)
        return F.linear(x, w, self.bias)


def swap(model, fn):
    for name, child in model.named_children():
        if isinstance(child, nn.Linear):
            setattr(model, name, fn(child))
        else:
            swap(child, fn)
    return model


def net():
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 4)))


# clean
def case_swap_then_move():
    m = swap(net(), QLinear.from_float).cuda()
    opt = torch.optim.SGD(m.parameters(), lr=.01)
    for _ in range(2):
        y = m(torch.randn(3, 8).cuda())
        F.mse_loss(y, torch.zeros_like(y)).backward()
        opt.step()
        opt.zero_grad()
    return [b.item() for n, b in m.named_buffers() if n.endswith("lo")]


# broken
def case_move_then_swap():
    m = net().cuda()
    swap(m, QLinear.from_float)           # weights are on the gpu, fresh observers are not
    return m(torch.randn(3, 8).cuda())


# broken
def case_nf4_lookup_table():
    lin = nn.Linear(8, 4, device="cuda")
    err = {}
    for scheme in Scheme:
        err[scheme.value] = (quantize_weight(lin.weight.data, scheme) - lin.weight).abs().mean().item()
    return err


# clean
def case_nf4_on_host_then_upload():
    m = net()
    with torch.no_grad():
        for mod in m.modules():
            if isinstance(mod, nn.Linear):
                mod.weight.copy_(quantize_weight(mod.weight, Scheme.NF4))
    m.cuda()
    with torch.no_grad():
        for name, p in m.named_parameters():
            if name.endswith("weight"):
                p.copy_(quantize_weight(p.cpu(), Scheme.NF4))         # copy_ crosses devices
                p.data = quantize_weight(p, Scheme.SYM)
    return m(torch.ones(1, 8, device="cuda")).tolist()


# broken
def case_histogram_edges():
    obs = Histogram().to("cuda")
    model = net().to("cuda")
    hooks = [mod.register_forward_hook(lambda _m, _i, o: obs(o)) for mod in model if isinstance(mod, nn.Linear)]
    with torch.no_grad():
        for _ in range(2):
            model(torch.randn(4, 8, device="cuda"))
    for h in hooks:
        h.remove()
    return obs.threshold()


# clean
def case_gptq_like():
    torch.manual_seed(0)
    layer, dev = nn.Linear(6, 4), torch.device(f"cuda:{torch.cuda.device_count() - 1}")
    layer = layer.to(dev)
    X = torch.randn(16, 6)
    H: Optional[torch.Tensor] = None
    for x in X.split(4):
        x = x.to(layer.weight.device)
        H = x.t() @ x if H is None else H + x.t() @ x
    damp = .01 * H.diag().mean()
    H[range(6), range(6)] += damp
    perm = torch.argsort(torch.diag(H.cpu()), descending=True)
    W = layer.weight.data.clone()[:, perm]
    Hp = H[perm][:, perm]
    U = torch.linalg.cholesky(torch.cholesky_inverse(torch.linalg.cholesky(Hp)), upper=True)
    Q = torch.zeros_like(W)
    for i in range(W.size(1)):
        q = quantize_weight(W[:, i], Scheme.SYM)
        Q[:, i] = q
        W[:, i:] -= ((W[:, i] - q) / U[i, i]).unsqueeze(1) @ U[i, i:].unsqueeze(0)
    layer.weight.data = Q[:, torch.argsort(perm)]
    return layer(X.to(dev)).norm().item()
