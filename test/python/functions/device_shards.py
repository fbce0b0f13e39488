"""Several GPUs in one process: stages, replicas, shards, experts, a parameter server and device maps."""
import copy
import math
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Dict, Sequence

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

DIM, CLASSES, VOCAB = 8, 4, 12

@dataclass
class Layout:
    devices: Sequence[str] = ("cuda:0", "cuda:1", "cuda:2", "cuda:3")
    layers: int = 4

    def place(self, index):
        return torch.device(self.devices[index * len(self.devices) // self.layers])

    @property
    def first(self):
        return self.place(0)

    @property
    def last(self):
        return self.place(self.layers - 1)

class OffsetLayout(Layout):
    def place(self, index):
        return torch.device("cuda", 1 + index * torch.cuda.device_count() // self.layers)

class RotaryTable:
    def __init__(self):
        self.angles = None

    def lookup(self, x):
        if self.angles is None or self.angles.shape[0] < x.shape[1]:
            rate = torch.exp(torch.arange(DIM, device=x.device) * (-math.log(1e3) / DIM))
            self.angles = torch.arange(x.shape[1], device=x.device)[:, None] * rate
        return self.angles[:x.shape[1]]

    def apply(self, x):
        angles = self.lookup(x)
        return x * angles.cos() + x.flip(-1) * angles.sin()  # raises

class RotaryPerDevice(RotaryTable):
    def __init__(self):
        super().__init__()
        self.tables: Dict[torch.device, torch.Tensor] = {}

    def lookup(self, x):
        self.angles = self.tables.get(x.device)
        self.tables[x.device] = super().lookup(x)
        return self.tables[x.device]

class Block(nn.Module):
    def __init__(self, rotary=None):
        super().__init__()
        self.norm, self.linear, self.rotary = nn.LayerNorm(DIM), nn.Linear(DIM, DIM), rotary

    def forward(self, x, mask=None):
        h = self.norm(x) if self.rotary is None else self.rotary.apply(self.norm(x))
        if mask is not None:
            h = h.masked_fill(mask[..., None], 0.0)  # raises
        return x + F.gelu(self.linear(h))

class SpreadModel(nn.Module):
    def __init__(self, layout, rotary=None):
        super().__init__()
        self.layout = layout
        self.embed = nn.Embedding(VOCAB, DIM).to(layout.first)
        self.blocks = nn.ModuleList(self.put(Block(rotary), i) for i in range(layout.layers))
        self.head = nn.Linear(DIM, VOCAB, bias=False).to(layout.last)

    def put(self, block, index):
        return block.to(self.layout.place(index))  # raises

    def carry(self, x, index):
        return x.to(self.layout.place(index))

    def forward(self, ids, mask=None):
        x = self.embed(ids.to(self.layout.first))
        for i, block in enumerate(self.blocks):
            x = block(self.carry(x, i), None if mask is None else self.carry(mask, i))
        return self.finish(x)

    def finish(self, x):
        return self.head(x)

class TiedSpreadModel(SpreadModel):
    def finish(self, x):
        return F.linear(x, self.embed.weight)  # raises

class LongSkipModel(SpreadModel):
    def __init__(self, layout, every=2):
        super().__init__(layout)
        self.every = every

    def forward(self, ids, mask=None):
        x = kept = self.embed(ids.to(self.layout.first))
        for i, block in enumerate(self.blocks):
            x = block(self.carry(x, i))
            if (i + 1) % self.every == 0:
                x = x + kept  # raises
                kept = x
        return self.finish(x)

def token_loss(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())  # raises

def batch_of(count=4, length=3, device="cpu"):
    ids = torch.arange(count * length).view(count, length) % VOCAB
    return ids.to(device), ids.roll(-1, 1).to(device)

class Pipeline:
    """Micro-batches through a SpreadModel, then one loss."""

    def __init__(self, model, chunks=2):
        self.model, self.chunks = model, chunks

    def outputs(self, ids):
        return torch.cat([self.model(part) for part in ids.chunk(self.chunks)])

    def losses(self, ids, labels):
        for part, wanted in zip(ids.chunk(self.chunks), labels.chunk(self.chunks)):
            yield token_loss(self.model(part), wanted.to(self.model.layout.last))

    def step(self, ids, labels):
        total = sum(self.losses(ids, labels)) / self.chunks
        total.backward()
        return total.item()

class HandMade:
    """Replicas of a module, with the work split by hand."""

    def __init__(self, module, devices=("cuda:0", "cuda:1"), rate=0.1):
        self.devices, self.rate = [torch.device(d) for d in devices], rate
        self.replicas = [copy.deepcopy(module).to(d) for d in self.devices]

    @property
    def master(self):
        return self.replicas[0]

    def scatter(self, *tensors):
        parts = [t.chunk(len(self.devices)) for t in tensors]
        return [[p[i].to(d) for p in parts] for i, d in enumerate(self.devices)]

    def local_losses(self, x, y):
        return [F.cross_entropy(r(a), b) for r, (a, b) in zip(self.replicas, self.scatter(x, y))]

    def reduce(self, grads):
        return torch.stack([g.to(self.devices[0]) for g in grads]).mean(0)

    def train(self, x, y):
        losses = self.local_losses(x, y)
        for loss in losses:
            loss.backward()
        for group in zip(*(r.parameters() for r in self.replicas)):
            mean = self.reduce([p.grad for p in group])
            for p in group:
                p.grad.copy_(mean)
                p.data.add_(p.grad, alpha=-self.rate)
        return self.report(losses)

    def report(self, losses):
        return float(np.mean([loss.item() for loss in losses]))

    def gather(self, x):
        outs = [r(part) for r, (part,) in zip(self.replicas, self.scatter(x))]
        return np.concatenate([o.detach().cpu().numpy() for o in outs])

    def sync_norm(self):
        means = torch.stack([r[1].running_mean.cpu() for r in self.replicas]).mean(0)
        for r in self.replicas:
            r[1].running_mean.copy_(means)

class StackedLosses(HandMade):
    def report(self, losses):
        return torch.stack(losses).mean().item()  # raises

def net(norm=False):
    middle = nn.BatchNorm1d(DIM) if norm else nn.Identity()
    return nn.Sequential(nn.Linear(DIM, DIM), middle, nn.ReLU(), nn.Linear(DIM, CLASSES))

def samples(count=8):
    return torch.randn(count, DIM), torch.arange(count) % CLASSES

class ColumnShards(nn.Module):
    def __init__(self, full, devices):
        super().__init__()
        self.devices = devices
        self.weights = nn.ParameterList(nn.Parameter(w.detach().to(d))
                                        for w, d in zip(full.weight.chunk(len(devices)), devices))
        self.bias = nn.Parameter(full.bias.detach().clone())

    def parts(self, x):
        return [F.linear(x.to(w.device), w) for w in self.weights]

    def forward(self, x):
        return torch.cat([part.to(x.device) for part in self.parts(x)], -1) + self.bias  # raises

class RowShards(ColumnShards):
    def __init__(self, full, devices):
        super().__init__(full, devices)
        self.weights = nn.ParameterList(nn.Parameter(w.detach().to(d))
                                        for w, d in zip(full.weight.chunk(len(devices), 1), devices))

    def parts(self, x):
        return [F.linear(a.to(w.device), w) for a, w in zip(x.chunk(len(self.devices), -1), self.weights)]

    def forward(self, x):
        total = self.bias.to(x.device)
        for part in self.parts(x):
            total = total + part.to(x.device)
        return total

class Experts(nn.Module):
    def __init__(self, devices, home="cuda:0"):
        super().__init__()
        self.router = nn.Linear(DIM, len(devices)).to(home)
        self.experts = nn.ModuleList(nn.Linear(DIM, DIM).to(d) for d in devices)

    def back(self, made, x):
        return made.to(x.device)

    def forward(self, x):
        choice, out = self.router(x).argmax(-1), torch.zeros_like(x)
        choice[:len(self.experts)] = torch.arange(len(self.experts)).to(choice)
        for n, expert in enumerate(self.experts):
            chosen = (choice == n).nonzero().squeeze(-1)
            made = self.back(expert(x[chosen].to(expert.weight.device)), x)
            out = out.index_add(0, chosen, made)  # raises
        return out

class LazyExperts(Experts):
    def back(self, made, x):
        return made.type_as(x) if made.dtype != x.dtype else made

class ParameterServer:
    def __init__(self, module, device="cpu", momentum=0.9):
        self.device, self.momentum = device, momentum
        self.values = OrderedDict((k, v.detach().to(device)) for k, v in module.named_parameters())
        self.velocity = {k: torch.zeros_like(v) for k, v in self.values.items()}

    def push(self, grads, rate=0.1):
        for key, grad in grads.items():
            self.velocity[key].mul_(self.momentum).add_(grad)  # raises
            self.values[key] -= rate * self.velocity[key]

    def pull(self, module):
        module.load_state_dict(self.values, strict=False)

    def distance(self, module):
        return sum((p.detach() - self.values[k].to(p)).pow(2).sum().cpu() for k, p in module.named_parameters())

class Worker:
    def __init__(self, server, device, ship=True):
        self.server, self.device, self.ship = server, device, ship
        self.module = net().to(device)

    def work(self, x, y):
        self.server.pull(self.module)
        self.module.zero_grad()
        F.cross_entropy(self.module(x.to(self.device)), y.to(self.device)).backward()
        grads = {k: p.grad for k, p in self.module.named_parameters()}
        if self.ship:
            grads = {k: g.to(self.server.device, non_blocking=True) for k, g in grads.items()}
        self.server.push(grads)

def dispatch(model, device_map):
    """Moves submodules by name, and their positional inputs with hooks."""
    def mover(device):
        return lambda module, args: tuple(a.to(device) if torch.is_tensor(a) else a for a in args)
    for name, module in model.named_modules():
        if name in device_map:
            module.to(device_map[name])
            module.register_forward_pre_hook(mover(device_map[name]))
    return model

class Scaled(nn.Module):
    def __init__(self, shape=()):
        super().__init__()
        self.scale = nn.Parameter(torch.full(shape, 2.0))
        self.one, self.two = Block(), Block()

    def forward(self, x, mask=None):
        return self.two(self.one(x, mask=mask)) * self.scale  # raises

@contextmanager
def current_card(number):
    with torch.cuda.device(number):
        yield torch.device("cuda", torch.cuda.current_device())

def case_spread_train():
    model = SpreadModel(Layout())
    ids, labels = batch_of()
    token_loss(model(ids), labels.to(model.layout.last)).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)

def case_spread_labels_first_card():
    model = SpreadModel(Layout())
    ids, labels = batch_of(device=model.layout.first)
    token_loss(model(ids, ids == 0), labels)

def case_offset_layout():
    SpreadModel(OffsetLayout(layers=8))

def case_one_card_layout():
    ids, labels = batch_of(device="cuda:2")
    model = LongSkipModel(Layout(devices=("cuda:2",)))
    token_loss(TiedSpreadModel(model.layout)(ids) + model(ids), labels)

def case_rotary_shared():
    SpreadModel(Layout(devices=("cuda:0",)), RotaryTable())(batch_of()[0])
    SpreadModel(Layout(), RotaryTable())(batch_of()[0])

def case_rotary_per_device():
    SpreadModel(Layout(), RotaryPerDevice())(batch_of()[0])

def case_tied_head():
    TiedSpreadModel(Layout())(batch_of(device="cuda:0")[0])

def case_long_skip():
    LongSkipModel(Layout(), every=9)(batch_of()[0])
    LongSkipModel(Layout())(batch_of()[0])

def case_pipeline():
    pipeline = Pipeline(SpreadModel(Layout(devices=("cuda:1", "cuda:3"))))
    pipeline.step(*batch_of())
    token_loss(pipeline.outputs(batch_of()[0]), batch_of(device="cuda:3")[1])

def case_hand_made():
    trainer = HandMade(net(norm=True))
    trainer.train(*samples())
    trainer.sync_norm()
    trainer.gather(samples()[0])

def case_stacked_losses():
    StackedLosses(net(), devices=("cuda:1", "cuda:1")).train(*samples())
    StackedLosses(net()).train(*samples())

def case_column_shards():
    layer = ColumnShards(nn.Linear(DIM, DIM), ("cuda:0", "cuda:1"))
    layer(torch.randn(2, DIM))
    layer(torch.randn(2, DIM, device="cuda:0"))

def case_row_shards():
    layer = RowShards(nn.Linear(DIM, DIM), ("cuda:0", "cuda:1", "cuda:2", "cuda:3"))
    layer(torch.randn(2, DIM, device="cuda:3")).sum().backward()

def case_experts():
    Experts(("cuda:0", "cuda:1", "cuda:2"))(torch.randn(5, DIM).to("cuda:0"))
    LazyExperts(("cuda:0", "cuda:0"))(torch.randn(5, DIM).to("cuda:0"))

def case_experts_not_returned():
    LazyExperts(("cuda:0", "cuda:1"))(torch.randn(5, DIM).to("cuda:0"))

def case_parameter_server():
    server = ParameterServer(net())
    for device in ("cuda:0", "cuda:3"):
        worker = Worker(server, device)
        worker.work(*samples())
        server.distance(worker.module).numpy()

def case_parameter_server_on_card():
    server = ParameterServer(net(), "cuda:0")
    Worker(server, "cuda:0", ship=False).work(*samples())
    Worker(server, "cuda:1", ship=False).work(*samples())

def case_device_map():
    model = dispatch(Scaled(), {"one": "cuda:0", "two": "cuda:1"})
    model(torch.randn(2, 3, DIM)).sum().backward()

def case_device_map_vector_scale():
    dispatch(Scaled((DIM,)), {"two": "cpu"})(torch.randn(2, 3, DIM))
    dispatch(Scaled((DIM,)), {"one": "cuda:0", "two": "cuda:1"})(torch.randn(2, 3, DIM))

def case_device_map_mask_keyword():
    model = dispatch(Scaled(), {"one": "cuda:0", "two": "cuda:1"})
    model.two(torch.randn(2, 3, DIM), torch.zeros(2, 3, dtype=torch.bool))
    model(torch.randn(2, 3, DIM), mask=torch.zeros(2, 3, dtype=torch.bool))

def case_current_card():
    with current_card(2) as card:
        model = net().cuda()
        x, y = (t.cuda() for t in samples())
    F.cross_entropy(model(x), y.to(card)).add(torch.zeros((), device="cuda:2"))

def case_current_card_left():
    with current_card(2):
        inside = torch.zeros(4, VOCAB, device="cuda")
    RowShards(nn.Linear(VOCAB, DIM), ("cuda:1", "cuda:0"))(inside).cpu().add(torch.ones(DIM))
    outside = torch.ones(4, VOCAB).cuda()
    torch.lerp(inside, outside, 0.5)  # raises
