r"""Optimizers, schedules, clipping and what a resume does to their states."""
import copy
import io
import math
import torch
from collections import defaultdict
from torch.optim import Optimizer


class Lion(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in filter(lambda q: q.grad is not None, group["params"]):
                p.mul_(1 - group["lr"] * group["weight_decay"])
                state = self.state[p]
                if "exp_avg" not in state:
                    state["exp_avg"] = torch.zeros_like(p)
                b1, b2 = group["betas"]
                m = state["exp_avg"]
                p.add_(m.mul(b1).add(p.grad, alpha=1 - b1).sign_(), alpha=-group["lr"])
                m.mul_(b2).add_(p.grad, alpha=1 - b2)
        return loss


class Lamb(Optimizer):
    def __init__(self, params, lr=1e-3, eager=False):
        super().__init__(params, {"lr": lr})
        if eager:
            for g in self.param_groups:
                for p in g["params"]:
                    self.state[p] = {"step": 0, "m": torch.zeros_like(p.data), "v": torch.zeros_like(p.data)}

    def step(self, closure=None):
        for g in self.param_groups:
            for p in g["params"]:
                if p.grad is None:
                    continue
                st = self.state[p]
                if not st:
                    st["step"], st["m"], st["v"] = 0, torch.zeros_like(p.data), torch.zeros_like(p.data)
                st["step"] += 1
                grad = p.grad.data
                st["m"].mul_(.9).add_(grad, alpha=.1)  # raises
                st["v"].mul_(.999).addcmul_(grad, grad, value=1e-3)
                upd = st["m"] / (st["v"].sqrt() + 1e-6)
                w, u = p.data.norm(), upd.norm()
                trust = torch.where(w > 0, torch.where(u > 0, w / u, torch.ones_like(w)), torch.ones_like(w))
                p.data.add_(upd * trust, alpha=-g["lr"])


class SAM:
    """wraps another optimizer; not a torch Optimizer"""

    def __init__(self, params, base, rho=.05):
        self.params = list(params)
        self.base = base
        self.rho = rho
        self.old = {}

    def _norm(self):
        shared = self.params[0].device
        return torch.stack([p.grad.norm().to(shared) for p in self.params if p.grad is not None]).norm()

    def first(self, shift_device=None):
        scale = self.rho / (self._norm() + 1e-12)
        with torch.no_grad():
            for p in self.params:
                self.old[p] = p.detach().clone() if shift_device is None else p.detach().to(shift_device)
                p.add_(p.grad * scale)  # raises
        self.base.zero_grad()

    def second(self):
        for p, o in self.old.items():
            p.data.copy_(o)
        self.base.step()
        self.base.zero_grad()


def mlp(*sizes, act=torch.nn.ReLU):
    layers = []
    for i, o in zip(sizes, sizes[1:]):
        layers += [torch.nn.Linear(i, o), act()]
    return torch.nn.Sequential(*layers[:-1])


def one_step(model, opt, device="cuda", n=4):
    x = torch.randn(n, model[0].in_features, device=device)
    loss = model(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.detach()


# clean
def case_optimizer_before_move():
    model = mlp(3, 5, 1)
    opts = [Lion(model.parameters(), weight_decay=.1), Lamb(model.parameters()), torch.optim.Adam(model.parameters())]
    model.to("cuda")              # parameters keep their identity
    hist = defaultdict(list)
    for o in opts:
        for _ in range(2):
            hist[type(o).__name__].append(one_step(model, o))
    return {k: torch.stack(v).mean().item() for k, v in hist.items()}


# broken
def case_eager_state_before_move():
    model = mlp(3, 5, 1)
    opt = Lamb(model.parameters(), eager=True)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 5)
    model = model.cuda()
    for _ in range(2):
        one_step(model, opt)
        sched.step()


# clean
def case_resume_from_host_checkpoint():
    model = mlp(2, 4, 1).cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=.1)
    one_step(model, opt)
    f = io.BytesIO()
    torch.save({"m": model.state_dict(), "o": opt.state_dict(), "epoch": 3}, f)
    ck = torch.load(io.BytesIO(f.getvalue()), map_location=torch.device("cpu"))
    fresh = mlp(2, 4, 1).cuda()
    opt2 = torch.optim.AdamW(fresh.parameters(), lr=.1)
    fresh.load_state_dict(ck["m"])
    opt2.load_state_dict(ck["o"])          # casts the state to each parameter's device
    sched = torch.optim.lr_scheduler.StepLR(opt2, 1)
    one_step(fresh, opt2)
    sched.step()
    return ck["epoch"], sched.get_last_lr()[0]


# broken
def case_moments_pasted_by_hand():
    model = mlp(2, 4, 1).cuda()
    opt = torch.optim.SGD(model.parameters(), lr=.1, momentum=.9)
    one_step(model, opt)
    saved = copy.deepcopy(opt.state_dict()["state"])
    saved = {k: {n: t.cpu() for n, t in v.items()} for k, v in saved.items()}
    for i, p in enumerate(model.parameters()):
        opt.state[p]["momentum_buffer"] = saved[i]["momentum_buffer"]
    x = torch.randn(3, 2).cuda()
    model(x).sum().backward()
    opt.step()  # raises


# broken
def case_sam_on_two_gpus():
    class Split(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = mlp(3, 4, 4).to("cuda:0")
            self.b = mlp(4, 1).to("cuda:1")

        def forward(self, x):
            return self.b(self.a(x).to("cuda:1"))

    net = Split()
    base = torch.optim.SGD(net.parameters(), lr=.1)
    sam = SAM(net.parameters(), base)
    net(torch.randn(2, 3, device="cuda:0")).pow(2).sum().backward()
    sam.first()
    net(torch.randn(2, 3, device="cuda:0")).pow(2).sum().backward()
    sam.second()


# clean
def case_sam_and_agc_on_one_gpu():
    def agc(params, clip=.01, eps=1e-3):
        for p in params:
            if p.grad is None:
                continue
            pn = p.detach().flatten(1).norm(dim=1, keepdim=True).clamp_(min=eps) if p.ndim > 1 else p.detach().norm().clamp_(min=eps)
            gn = p.grad.flatten(1).norm(dim=1, keepdim=True) if p.ndim > 1 else p.grad.norm()
            p.grad.mul_((pn * clip / gn.clamp(min=1e-6)).clamp(max=1.))

    net = mlp(3, 4, 1).to("cuda:1")
    base = torch.optim.Adagrad(net.parameters(), lr=.05)
    sam = SAM(net.parameters(), base)
    for warm in range(2):
        lr_mult = torch.tensor(min(1., (warm + 1) / 2))
        (net(torch.randn(4, 3, device="cuda:1")).pow(2).mean() * lr_mult).backward()
        sam.first(shift_device="cpu")
        net(torch.randn(4, 3).to("cuda:1")).pow(2).mean().backward()
        agc(net.parameters())
        sam.second()
    total = math.sqrt(sum(float(p.norm()) ** 2 for p in net.parameters()))
    return total
