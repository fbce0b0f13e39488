import collections
import itertools
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Dict, List, Union

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DataParallel, replicate, parallel_apply
from torch.nn.parallel.scatter_gather import gather, scatter


class PipelineMLP(nn.Module):
    def __init__(self, dims, devices):
        super().__init__()
        self.devices = [torch.device(d) for d in devices]
        self.layers = nn.ModuleList()
        for i, (a, b) in enumerate(zip(dims[:-1], dims[1:])):
            self.layers.append(nn.Linear(a, b).to(self.devices[i % len(self.devices)]))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x.to(layer.weight.device)))
        return x

    @property
    def input_device(self):
        return self.devices[0]

    @property
    def output_device(self):
        return self.layers[-1].weight.device


def case_pipeline_labels_follow_output():
    net = PipelineMLP([4, 8, 8, 3], ["cuda:0", "cuda:1", "cuda:2"])
    opt = torch.optim.Adam(net.parameters())
    x, y = torch.randn(5, 4), torch.randint(3, (5,))
    logits = net(x.to(net.input_device))
    loss = F.cross_entropy(logits, y.to(logits.device))
    loss.backward()
    total = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    return total


def case_pipeline_labels_on_input_device():
    net = PipelineMLP([4, 8, 8, 3], ["cuda:0", "cuda:1", "cuda:2"])
    batch = {"x": torch.randn(5, 4), "labels": torch.randint(3, (5,))}
    batch = {k: v.to(net.input_device) for k, v in batch.items()}
    logits = net(batch["x"])
    return F.cross_entropy(logits, batch["labels"])  # raises


class SplitEncoderDecoder(nn.Module):
    def __init__(self, dim=8, vocab=10):
        super().__init__()
        self.shared = nn.Embedding(vocab, dim)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)
        self.bias = nn.Parameter(torch.zeros(vocab))

    def parallelize(self, device_map: Dict[str, int]):
        for name, index in device_map.items():
            getattr(self, name).to(f"cuda:{index}")
        self.bias.data = self.bias.data.to("cuda:%d" % device_map["shared"])
        self.first, self.last = device_map["shared"], device_map["head"]
        return self

    def forward(self, src, tgt):
        emb = self.shared(src)
        _, h = self.encoder(emb)
        h = h.to(self.last)
        out, _ = self.decoder(self.shared(tgt).to(self.last), h)
        return self.head(out)

    def tied_logits(self, src):
        out, _ = self.encoder(self.shared(src))
        out = out.to(self.last)
        return torch.matmul(out, self.shared.weight.t())  # raises

    def biased(self, src, tgt):
        return self(src, tgt) + self.bias  # raises


MAP = {"shared": 0, "encoder": 0, "decoder": 1, "head": 1}


def case_encoder_decoder_split():
    model = SplitEncoderDecoder().parallelize(MAP)
    src = torch.randint(10, (2, 5), device="cuda:0")
    return model(src, src[:, :3]).argmax(-1)


def case_encoder_decoder_tied():
    model = SplitEncoderDecoder()
    model.parallelize(MAP)
    return model.tied_logits(torch.randint(10, (2, 5)).to(0))


def case_encoder_decoder_root_bias():
    model = SplitEncoderDecoder().parallelize(dict(MAP, decoder=2, head=2))
    src = torch.randint(10, (2, 5)).cuda()
    return model.biased(src, src)


def case_data_parallel_by_hand():
    devices = list(range(2))
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).cuda(devices[0])
    x = torch.randn(6, 4, device="cuda:0")
    chunks = x.chunk(len(devices))
    copies = [model.to(0)] + [nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).to(d) for d in devices[1:]]
    for each in copies[1:]:
        each.load_state_dict(model.state_dict())
    outs = [m(c.to(d)) for m, c, d in zip(copies, chunks, devices)]
    return torch.cat([o.to(devices[0]) for o in outs])


def case_gather_losses_of_replicas():
    losses = []
    for i in range(3):
        dev = torch.device("cuda", i)
        w = torch.randn(4, 2, device=dev, requires_grad=True)
        losses.append((torch.randn(3, 4, device=dev) @ w).pow(2).mean())
    return torch.stack(losses).mean()  # raises


def case_sum_losses_as_numbers():
    losses = {}
    for i in range(torch.cuda.device_count()):
        with torch.cuda.device(i):
            w = torch.randn(4, 2).cuda()
            losses[i] = (w * 2).mean()
    return sum(v.item() for v in losses.values()) / len(losses)


def case_current_device_and_bare_cuda():
    with torch.cuda.device(1):
        weight = torch.ones(3, 3).cuda()
    x = torch.ones(2, 3, device="cuda")
    return x @ weight  # raises


def case_current_device_everything_inside():
    with torch.cuda.device(3):
        weight = torch.ones(3, 3).cuda()
        x = torch.ones(2, 3, device="cuda")
        y = x @ weight
    return y + torch.zeros(3, device="cuda:3")


class Worker(threading.Thread):
    def __init__(self, index, weight, results):
        super().__init__()
        self.index, self.weight, self.results = index, weight, results

    def run(self):
        device = torch.device(f"cuda:{self.index}")
        local = self.weight.to(device)
        x = torch.full((2, local.size(0)), float(self.index), device=device)
        self.results[self.index] = (x @ local).sum().cpu()


def case_workers_one_gpu_each():
    results = {}
    workers = [Worker(i, torch.eye(3), results) for i in range(4)]
    [w.start() for w in workers]
    [w.join() for w in workers]
    return torch.stack([results[i] for i in sorted(results)])


class ParameterServer:
    def __init__(self, params, device="cpu"):
        self.device = torch.device(device)
        self.params = {n: p.detach().to(self.device).clone() for n, p in params}
        self.velocity = {n: torch.zeros_like(p) for n, p in self.params.items()}

    def push(self, grads, lr=0.1):
        for name, grad in grads.items():
            v = self.velocity[name]
            v.mul_(0.9).add_(grad.to(v.device))
            self.params[name].sub_(lr * v)

    def push_sum(self, many):
        for name in self.params:
            self.params[name] -= 0.1 * sum(g[name] for g in many)  # raises

    def pull(self, model):
        with torch.no_grad():
            for n, p in model.named_parameters():
                p.copy_(self.params[n])


def _grads(model):
    x = torch.randn(3, 4, device=next(model.parameters()).device)
    model.zero_grad()
    model(x).square().mean().backward()
    return {n: p.grad for n, p in model.named_parameters()}


def case_parameter_server_on_host():
    models = [nn.Linear(4, 2).cuda(i) for i in range(2)]
    server = ParameterServer(models[0].named_parameters())
    for m in models:
        server.push(_grads(m))
        server.pull(m)
    return models[1](torch.ones(1, 4, device=1))


def case_parameter_server_summed():
    models = [nn.Linear(4, 2).cuda(i) for i in range(2)]
    server = ParameterServer(models[0].named_parameters(), "cuda:0")
    return server.push_sum([_grads(m) for m in models])


class OffloadedAdam:
    """Optimizer states of the parameters on the host."""

    def __init__(self, params, lr=1e-2):
        self.params = list(params)
        self.host = [p.detach().cpu().float().clone() for p in self.params]
        self.m = [torch.zeros_like(h) for h in self.host]
        self.lr = lr

    def grad_norm(self):
        return torch.norm(torch.stack([p.grad.norm() for p in self.params]))

    def step(self, clip=1e-4):
        norm = float(self.grad_norm())
        for p, h, m in zip(self.params, self.host, self.m):
            g = p.grad.to("cpu", copy=True)
            if norm > clip:
                g.mul_(clip / norm)
            m.mul_(0.9).add_(g, alpha=0.1)
            h.sub_(m, alpha=self.lr)
            p.data.copy_(h)


class OffloadedSGD(OffloadedAdam):
    def step(self, clip=1e-4):
        norm = self.grad_norm()
        for p, h in zip(self.params, self.host):
            g = p.grad.cpu()
            g.mul_(clip / (norm + 1e-6))  # raises
            h.sub_(g, alpha=self.lr)
            p.data.copy_(h)


def case_offloaded_step():
    model = nn.Linear(4, 2).cuda()
    opt = OffloadedAdam(model.parameters())
    _grads(model)
    opt.step()
    return model.weight.sum()


def case_offloaded_step_device_norm():
    model = nn.Linear(4, 2).cuda()
    opt = OffloadedSGD(model.parameters())
    _grads(model)
    opt.step()
    return model.weight.sum()


def shard(tensor: torch.Tensor, devices: List[int], dim=0):
    return [piece.to(f"cuda:{d}") for piece, d in zip(tensor.chunk(len(devices), dim), devices)]


class ColumnParallel(nn.Module):
    def __init__(self, i, o, devices):
        super().__init__()
        self.devices = devices
        full = torch.randn(o, i)
        self.shards = nn.ParameterList([nn.Parameter(s) for s in shard(full, devices)])

    def forward(self, x, gather_to=None):
        parts = [F.linear(x.to(w.device), w) for w in self.shards]
        gather_to = x.device if gather_to is None else gather_to
        return torch.cat([p.to(gather_to) for p in parts], dim=-1)


class RowParallel(ColumnParallel):
    def forward(self, x, gather_to=None):
        cols = x.chunk(len(self.devices), -1)
        out = 0
        for c, w in zip(cols, self.shards):
            part = c.to(w.device) @ w
            out = out + part  # raises
        return out


def case_column_parallel():
    layer = ColumnParallel(4, 6, [0, 1, 3])
    y = layer(torch.randn(2, 4, device="cuda:2"))
    return (y - y.mean(-1, keepdim=True)).norm()


def case_row_parallel_reduce():
    layer = RowParallel(4, 6, [0, 1])
    return layer(torch.randn(2, 6).cuda())


class ActivationStore:
    def __init__(self, model, names):
        self.store = {}
        modules = dict(model.named_modules())
        self.handles = [modules[n].register_forward_hook(self._keep(n)) for n in names]

    def _keep(self, name):
        def hook(module, inputs, output):
            self.store[name] = output.detach()
        return hook

    def __enter__(self):
        return self.store

    def __exit__(self, *exc):
        for h in self.handles:
            h.remove()


def case_activation_similarity_across_stages():
    net = PipelineMLP([4, 8, 8], ["cuda:0", "cuda:1"])
    with ActivationStore(net, ["layers.0", "layers.1"]) as acts:
        net(torch.randn(3, 4))
    a, b = acts["layers.0"], acts["layers.1"]
    return F.cosine_similarity(a, b)  # raises


def case_activation_norms_per_stage():
    net = PipelineMLP([4, 8, 8], ["cuda:0", "cuda:1"])
    with ActivationStore(net, ["layers.0", "layers.1"]) as acts:
        net(torch.randn(3, 4))
    return {k: v.norm(dim=-1).tolist() for k, v in acts.items()}


def edit_layer(model, layer, delta):
    def add(module, args, output):
        return output + delta.to(output.device)
    return model.layers[layer].register_forward_hook(add)


def optimise_delta(model, layer, x, target, steps=2):
    delta = torch.zeros(8, requires_grad=True, device="cuda:0")
    opt = torch.optim.Adam([delta], lr=0.1)
    handle = edit_layer(model, layer, delta)
    for _ in range(steps):
        opt.zero_grad()
        out = model(x)
        nll = F.cross_entropy(out, target.to(out.device))
        decay = 0.1 * delta.norm() ** 2
        loss = nll + decay.to(nll.device)
        loss.backward()
        opt.step()
    handle.remove()
    return delta.detach(), nll


def case_edit_second_stage():
    net = PipelineMLP([4, 8, 8, 3], ["cuda:0", "cuda:1", "cuda:1"])
    delta, nll = optimise_delta(net, 1, torch.randn(2, 4), torch.tensor([0, 2]))
    return delta.norm().item() + nll.item()


def case_edit_scalar_losses_of_two_gpus():
    net = PipelineMLP([4, 8, 8, 3], ["cuda:0", "cuda:1", "cuda:1"])
    delta, nll = optimise_delta(net, 1, torch.randn(2, 4), torch.tensor([0, 2]))
    penalty = delta.abs().mean()
    return nll + 0.01 * penalty  # raises
