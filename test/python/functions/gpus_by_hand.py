"""Models and data over several GPUs, by hand and by DataParallel."""
import contextlib
import itertools
import os
from collections import ChainMap, deque
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.cuda as cuda
import torch.cuda.comm as comm
import torch.nn as nn
from torch.nn.parallel import DataParallel, gather, parallel_apply, replicate, scatter

N = torch.cuda.device_count()


def _devices(limit=None):
    return [torch.device("cuda", i) for i in range(N)][:limit]


class Pipeline(nn.Module):
    """Blocks laid over devices in turn. `hop` is how activations get from one to the next."""

    def __init__(self, dim, depth, devices, hop=True):
        super().__init__()
        self.devices, self.hop = devices, hop
        per = -(-depth // len(devices))
        self.where = [devices[i // per] for i in range(depth)]
        self.blocks = nn.ModuleList(nn.Linear(dim, dim).to(w) for w in self.where)

    def forward(self, x):
        for block, where in zip(self.blocks, self.where):
            if self.hop:
                x = x.to(where, non_blocking=True)
            x = torch.relu(block(x))  # raises
        return x


def pipeline_over_four():
    return Pipeline(4, 8, _devices())(torch.randn(2, 4)).device.index


def pipeline_without_hops():
    return Pipeline(4, 8, _devices(2), hop=False)(torch.randn(2, 4, device="cuda:0"))


def pipeline_on_one_without_hops():
    return Pipeline(4, 8, _devices(1), hop=False)(torch.randn(2, 4, device="cuda")).shape


def pipeline_residual_from_input():
    pipe = Pipeline(4, 4, _devices(2))
    x = torch.randn(2, 4, device=pipe.where[0])
    return (pipe(x) + x).sum()  # raises


def pipeline_residual_brought_along():
    pipe = Pipeline(4, 4, _devices(2))
    x = torch.randn(2, 4, device=pipe.where[0])
    y = pipe(x)
    if y.device != x.device:
        x = x.to(y.device)
    return (y + x).sum().item()


def pipeline_loss_against_labels_of_first_device():
    pipe = Pipeline(4, 4, _devices(4))
    x = torch.randn(2, 4, device="cuda:0")
    y = torch.tensor([1, 3]).to(x.device)
    return nn.CrossEntropyLoss()(pipe(x), y)  # raises


def pipeline_loss_against_labels_of_output():
    pipe = Pipeline(4, 4, _devices(4))
    out = pipe(torch.randn(2, 4, device="cuda:0"))
    loss = nn.CrossEntropyLoss()(out, torch.tensor([1, 3]).to(out.device))
    loss.backward()
    return {p.grad.device.index for p in pipe.parameters()}


# ------------------------------------------------------- the current device


def current_device_context():
    with cuda.device(2):
        a = torch.randn(3, device="cuda")
    b = torch.randn(3).cuda(2)
    return (a + b).device.index


def current_device_context_and_more():
    with cuda.device(2):
        a = torch.randn(3, device="cuda")
    b = torch.randn(3, device="cuda")
    return torch.dot(a, b)  # raises


def current_device_set_and_set_back():
    before = cuda.current_device()
    cuda.set_device(3)
    w = torch.eye(3).cuda()
    cuda.set_device(before)
    return (torch.ones(2, 3, device="cuda:3") @ w).sum().item()


def current_device_set_between():
    w = torch.eye(3).cuda()
    cuda.set_device(1)
    x = torch.ones(2, 3).cuda()
    return x @ w  # raises


def current_device_nested():
    made = []
    with cuda.device(1):
        made.append(torch.ones(2, device="cuda"))
        with cuda.device(2):
            made.append(torch.ones(2, device="cuda"))
        made.append(torch.ones(2, device="cuda"))
    return (made[0] + made[2] + made[1].to(made[0])).sum().item()


def current_device_of_tensor():
    x = torch.ones(4, device="cuda:3")
    with cuda.device_of(x):
        y = torch.arange(4, device="cuda")
    return (x * y).sum().item()


def current_device_survives_error():
    x = torch.ones(2, device="cuda:0")
    try:
        with cuda.device("cuda:1"):
            raise ValueError("no batch")
    except ValueError:
        y = torch.zeros(2).cuda()
    return (x + y).sum().item()


def _init_rank(rank):
    os.environ["LOCAL_RANK"] = str(rank)
    local = int(os.environ["LOCAL_RANK"])
    cuda.set_device(local)
    return torch.device("cuda", local)


def rank_uses_its_own_device():
    device = _init_rank(1)
    net = nn.Linear(3, 3).to(device)
    return net(torch.ones(1, 3).cuda()).device.index


def rank_multiplies_by_checkpoint():
    saved = {k: v for k, v in nn.Linear(3, 3).to("cuda:0").state_dict().items()}
    device = _init_rank(1)
    x = torch.ones(1, 3, device=device)
    return x @ saved["weight"].t() + saved["bias"]  # raises


def rank_loads_checkpoint():
    saved = {k: v for k, v in nn.Linear(3, 3).to("cuda:0").state_dict().items()}
    device = _init_rank(1)
    net = nn.Linear(3, 3).to(device)
    net.load_state_dict(saved)
    return net(torch.ones(1, 3, device=device)).sum().item()


# ------------------------------------------------------- DataParallel


class WithScale(nn.Module):
    def __init__(self, as_buffer):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        scale = torch.linspace(0.5, 1.0, 4)
        if as_buffer:
            self.register_buffer("scale", scale)
        else:
            self.scale = scale.cuda()

    def forward(self, x):
        return self.fc(x) * self.scale  # raises


def parallel_with_buffer():
    return DataParallel(WithScale(True).cuda())(torch.randn(8, 4).cuda()).shape


def parallel_with_plain_tensor():
    net = WithScale(False).cuda()
    ids = list(range(N))
    pieces = scatter(torch.randn(8, 4).cuda(), ids)
    return gather([r(p) for r, p in zip(replicate(net, ids), pieces)], 0).shape


def parallel_single_device_with_plain_tensor():
    return DataParallel(WithScale(False).cuda(), device_ids=[0])(torch.randn(8, 4).cuda()).shape


def parallel_output_on_second():
    net = DataParallel(nn.Linear(4, 2).to("cuda:0"), device_ids=[0, 1], output_device=1)
    y = torch.tensor([0, 1, 1, 0], device="cuda:0")
    return nn.functional.cross_entropy(net(torch.randn(4, 4)), y)  # raises


def parallel_output_on_first():
    net = DataParallel(nn.Linear(4, 2).to("cuda:0"), device_ids=[0, 1])
    y = torch.tensor([0, 1, 1, 0], device="cuda:0")
    return nn.functional.cross_entropy(net(torch.randn(4, 4)), y).item()


def replicas_run_by_hand():
    net = nn.Linear(4, 2).to("cuda:0")
    ids = [0, 1, 2]
    inputs = scatter(torch.randn(6, 4), ids)
    outputs = parallel_apply(replicate(net, ids), [(i,) for i in inputs], devices=ids)
    return gather(outputs, 0).shape


def replicas_outputs_concatenated():
    net = nn.Linear(4, 2).to("cuda:0")
    inputs = scatter(torch.randn(6, 4), [0, 1, 2])
    outputs = [r(i) for r, i in zip(replicate(net, [0, 1, 2]), inputs)]
    return torch.cat(outputs).mean()  # raises


def replicas_turned_by_one():
    net = nn.Linear(4, 2).to("cuda:0")
    inputs = scatter(torch.randn(6, 4), [0, 1, 2])
    replicas = deque(replicate(net, [0, 1, 2]))
    replicas.rotate(1)
    return [r(i).sum().item() for r, i in zip(replicas, inputs)]  # raises


def replicas_turned_by_all():
    net = nn.Linear(4, 2).to("cuda:0")
    inputs = scatter(torch.randn(6, 4), [0, 1, 2])
    replicas = deque(replicate(net, [0, 1, 2]))
    replicas.rotate(len(replicas))
    return [r(i).sum().item() for r, i in zip(replicas, inputs)]


# ------------------------------------------------------- collectives by hand


def _all_reduce(tensors, op=torch.add):
    """Every tensor becomes the reduction of all of them, where it is."""
    total = tensors[0].clone()
    for t in tensors[1:]:
        total = op(total, t.to(total.device))
    for t in tensors:
        t.copy_(total)
    return tensors


def reduced_over_all():
    grads = [torch.full((3,), float(d.index), device=d) for d in _devices()]
    out = _all_reduce(grads)
    return [g.sum().item() for g in out]


def reduced_by_builtin():
    grads = [torch.full((3,), float(d.index), device=d) for d in _devices(2)]
    return sum(grads) / len(grads)  # raises


def reduced_of_scalars_by_builtin():
    losses = [torch.tensor(float(d.index), device=d) for d in _devices()]
    return sum(each.item() for each in losses) / len(losses)


def reduced_scalars_of_two_devices():
    losses = [torch.tensor(float(d.index), device=d) for d in _devices(2)]
    return losses[0] + losses[1]  # raises


def broadcast_and_reduce():
    first = torch.arange(3.0, device="cuda:0")
    copies = comm.broadcast(first, devices=[0, 1, 2])
    scaled = [c * (i + 1) for i, c in enumerate(copies)]
    back = comm.reduce_add(scaled, destination=0)
    return (back - first * 6).abs().max().item()


def broadcast_compared_with_source():
    first = torch.arange(3.0, device="cuda:0")
    copies = comm.broadcast(first, devices=[0, 1, 2])
    return all(torch.equal(c, first) for c in copies)  # raises


def ring_exchange():
    devices = _devices()
    parts = [torch.full((2,), float(i), device=d) for i, d in enumerate(devices)]
    for _ in range(len(devices) - 1):
        parts = [parts[i - 1].to(d) + i for i, d in enumerate(devices)]
    return [p.device.index for p in parts]


def ring_exchange_accumulated():
    devices = _devices()
    parts = [torch.full((2,), float(i), device=d) for i, d in enumerate(devices)]
    sums = [p.clone() for p in parts]
    for shift in range(1, len(devices)):
        for i, total in enumerate(sums):
            total += parts[(i + shift) % len(parts)]  # raises
    return sums


# ------------------------------------------------------- tensor parallel, streams, threads


class ColumnParallel(nn.Module):
    def __init__(self, fan_in, fan_out, devices, collect=None):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(fan_in, fan_out // len(devices)).to(d) for d in devices)
        self.collect = collect

    def forward(self, x):
        ys = [p(x.to(p.weight.device)) for p in self.parts]
        if self.collect is not None:
            ys = [y.to(self.collect) for y in ys]
        return torch.cat(ys, -1)  # raises


def columns_collected():
    return ColumnParallel(4, 8, _devices(2), collect="cuda:0")(torch.randn(3, 4)).shape


def columns_as_they_are():
    return ColumnParallel(4, 8, _devices(2))(torch.randn(3, 4)).shape


def columns_of_same_device_twice():
    return ColumnParallel(4, 8, [_devices()[1]] * 2)(torch.randn(3, 4)).shape


def stream_of_same_device():
    s = cuda.Stream(device=0)
    x = torch.randn(4, device="cuda:0")
    with cuda.stream(s):
        y = x * 2
        z = torch.ones(4, device="cuda")
    cuda.current_stream().wait_stream(s)
    return (y + z).sum().item()


def stream_of_another_device():
    s = cuda.Stream(device=1)
    x = torch.randn(4, device="cuda:0")
    with cuda.stream(s):
        z = torch.ones(4, device="cuda")
        y = x * z  # raises
    return y


def threads_with_their_devices():
    def work(d):
        with cuda.device(d):
            return (torch.ones(2, device=d) + torch.ones(2, device="cuda")).sum().item()

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, _devices()))


def experts_by_device():
    experts = {d: nn.Linear(3, 3).to(d) for d in _devices()}
    x = torch.randn(8, 3, device="cuda:0")
    gate = torch.arange(8, device=x.device) % 4
    out = torch.empty_like(x)
    for i, (d, expert) in enumerate(experts.items()):
        rows = (gate == i).nonzero().flatten()
        out[rows] = expert(x[rows].to(d)).to(out.device)
    return out.shape


def experts_by_device_indexed_add():
    experts = {d: nn.Linear(3, 3).to(d) for d in _devices()}
    x = torch.randn(8, 3, device="cuda:0")
    gate = torch.arange(8, device=x.device) % 4
    out = torch.zeros_like(x)
    for i, (d, expert) in enumerate(experts.items()):
        rows = (gate == i).nonzero().flatten()
        out = out.index_add(0, rows, expert(x[rows].to(d)))  # raises
    return out


def peer_table_by_cycle():
    owner = dict(zip(("emb", "enc", "dec", "head", "aux"), itertools.cycle(_devices(2))))
    layers = {name: nn.Linear(2, 2).to(d) for name, d in owner.items()}
    x = torch.ones(1, 2, device=owner["emb"])
    return layers["head"](layers["aux"](layers["dec"](layers["emb"](x)))).sum()  # raises


def peer_table_by_chain_map():
    owner = ChainMap({"head": "cuda:1"}, dict.fromkeys(("emb", "enc", "head"), "cuda:0"))
    layers = {name: nn.Linear(2, 2).to(d) for name, d in owner.items()}
    x = layers["enc"](layers["emb"](torch.ones(1, 2, device=owner["emb"])))
    return layers["head"](x.to(owner["head"])).sum().item()


@contextlib.contextmanager
def _pinned(index):
    previous = cuda.current_device()
    cuda.set_device(index)
    try:
        yield torch.device("cuda", index)
    finally:
        cuda.set_device(previous)


def pinned_to_last():
    with _pinned(N - 1) as d:
        noise = torch.randn(3, device="cuda")
        return (noise + torch.ones(3, device=d)).device.index


def pinned_while_built():
    with _pinned(N - 1) as d:
        net = nn.Linear(3, 1).cuda()
    return net(torch.ones(3).cuda())  # raises
