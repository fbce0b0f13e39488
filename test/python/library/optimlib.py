"""Optimizers, averaging and gradient utilities."""
import copy
import math

import torch
from torch import nn
from torch.optim import Optimizer


class Lion(Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                p.data.mul_(1 - group["lr"] * group["weight_decay"])
                b1, b2 = group["betas"]
                update = state["exp_avg"].clone().mul_(b1).add(p.grad, alpha=1 - b1).sign_()
                p.add_(update, alpha=-group["lr"])
                state["exp_avg"].mul_(b2).add_(p.grad, alpha=1 - b2)


class LARS(Optimizer):
    def __init__(self, params, lr, momentum=0.9, eta=1e-3):
        super().__init__(params, dict(lr=lr, momentum=momentum, eta=eta))

    @torch.no_grad()
    def step(self, closure=None):
        for g in self.param_groups:
            for p in g["params"]:
                dp = p.grad
                if dp is None:
                    continue
                if p.ndim > 1:
                    pn, un = torch.norm(p), torch.norm(dp)
                    one = torch.ones(1)
                    q = torch.where(pn > 0., torch.where(un > 0, g["eta"] * pn / un, one), one)  # raises
                    dp = dp.mul(q)
                st = self.state[p]
                mu = st.setdefault("mu", torch.zeros_like(p))
                mu.mul_(g["momentum"]).add_(dp)
                p.add_(mu, alpha=-g["lr"])


class SAM(Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kw):
        super().__init__(params, dict(rho=rho, **kw))
        self.base_optimizer = base_optimizer(self.param_groups, **kw)

    def _grad_norm(self):
        shared = self.param_groups[0]["params"][0].device
        return torch.norm(torch.stack([p.grad.norm(p=2).to(shared) for g in self.param_groups for p in g["params"]]), p=2)

    @torch.no_grad()
    def first_step(self):
        scale = self.param_groups[0]["rho"] / (self._grad_norm() + 1e-12)
        for g in self.param_groups:
            for p in g["params"]:
                e_w = p.grad * scale.to(p)
                p.add_(e_w)
                self.state[p]["e_w"] = e_w

    @torch.no_grad()
    def second_step(self):
        for g in self.param_groups:
            for p in g["params"]:
                p.sub_(self.state[p]["e_w"])
        self.base_optimizer.step()


class Adafactorish(Optimizer):
    def __init__(self, params, lr=1e-3, clip=1.0):
        super().__init__(params, dict(lr=lr, clip=clip))
        for g in self.param_groups:
            for p in g["params"]:
                self.state[p]["row"] = torch.zeros(p.shape[0])

    @torch.no_grad()
    def step(self, closure=None):
        for g in self.param_groups:
            for p in g["params"]:
                row = self.state[p]["row"]
                sq = p.grad.pow(2).flatten(1).mean(1) if p.ndim > 1 else p.grad.pow(2)
                row.mul_(0.9).add_(sq, alpha=0.1)  # raises
                denom = row.sqrt().add_(1e-8).view(-1, *[1] * (p.ndim - 1))
                p.addcdiv_(p.grad, denom.expand_as(p), value=-g["lr"])


class EMA:
    def __init__(self, model, decay=0.999):
        self.decay, self.step = decay, 0
        self.shadow = [p.detach().clone() for p in model.parameters()]

    @torch.no_grad()
    def update(self, model):
        self.step += 1
        d = min(self.decay, (1 + self.step) / (10 + self.step))
        for s, p in zip(self.shadow, model.parameters()):
            s.sub_((1 - d) * (s - p))

    def copy_to(self, model):
        for s, p in zip(self.shadow, model.parameters()):
            p.data.copy_(s.data)


class SWA(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.module = copy.deepcopy(model)
        self.register_buffer("n", torch.tensor(0))

    @torch.no_grad()
    def update(self, model):
        for a, p in zip(self.module.parameters(), model.parameters()):
            a.copy_(a + (p.to(a.device) - a) / (self.n.to(a.device) + 1))
        self.n += 1


def global_norm(params):
    total = torch.zeros(())
    for p in params:
        if p.grad is not None:
            total = total + p.grad.pow(2).sum()
    return total.sqrt()


def clip_by_global_norm(params, max_norm):
    params = list(params)
    norm = global_norm(params)
    coef = torch.clamp(max_norm / (norm + 1e-6), max=1.0)
    for p in params:
        p.grad.mul_(coef)
    return norm


def adaptive_clip(params, factor=0.01):
    for p in params:
        pn = p.detach().norm(2).clamp(min=1e-3)
        gn = p.grad.norm(2)
        limit = torch.tensor([factor]) * pn  # raises
        if gn > limit:
            p.grad.mul_(limit / gn.clamp(min=1e-6))


def flatten_grads(params):
    return torch.cat([p.grad.reshape(-1) if p.grad is not None else torch.zeros(p.numel()) for p in params])


def hutchinson_trace(loss, params, samples=2):
    params = list(params)
    grads = torch.autograd.grad(loss, params, create_graph=True)
    trace = 0.0
    for _ in range(samples):
        vs = [torch.randint(0, 2, p.shape).float() * 2 - 1 for p in params]
        dot = sum((g * v).sum() for g, v in zip(grads, vs))  # raises
        hv = torch.autograd.grad(dot, params, retain_graph=True)
        trace += sum((h * v).sum().item() for h, v in zip(hv, vs))
    return trace / samples


def gradient_noise(params, eta=0.01, t=1):
    for p in params:
        p.grad.add_(torch.empty_like(p.grad).normal_(0, math.sqrt(eta / (1 + t) ** 0.55)))


def pcgrad(grads):
    order = torch.randperm(len(grads))
    out = [g.clone() for g in grads]
    for i in range(len(out)):
        for j in order.tolist():
            dot = torch.dot(out[i], grads[j])
            if dot < 0:
                out[i] -= dot / grads[j].norm() ** 2 * grads[j]
    return torch.stack(out).mean(0)


def cagrad_weights(grads):
    G = torch.stack(grads)
    w = torch.full((len(grads),), 1.0 / len(grads), requires_grad=True)
    obj = (w.softmax(0) @ G).norm()  # raises
    obj.backward()
    return w.detach()
