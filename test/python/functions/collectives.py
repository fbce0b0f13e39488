"""What ranks exchange, with NCCL and with Gloo; each case joins a group of one rank."""
import functools
import tempfile

import torch
import torch.distributed as dist
from torch import nn


def with_ranks(body):
    @functools.wraps(body)
    def run():
        join("nccl")
        try:
            return body()
        finally:
            dist.destroy_process_group()
    return run


def join(backend):
    dist.init_process_group(backend=backend, init_method="file://" + tempfile.mktemp(), rank=0, world_size=1)


class Average:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, value, n=1):
        self.total += value * n
        self.count += n

    def exchange(self):
        both = torch.FloatTensor([self.total, self.count])
        dist.all_reduce(both, dist.ReduceOp.SUM, async_op=False)  # raises
        self.total, self.count = both.tolist()

    def exchange_on(self, device):
        both = torch.tensor([self.total, self.count], dtype=torch.float32, device=device)
        dist.all_reduce(both, dist.ReduceOp.SUM, async_op=False)
        self.total, self.count = both.tolist()


def case_average_of_ranks():
    join("nccl")
    torch.cuda.set_device(0)
    net = nn.Linear(2, 1).cuda()
    average = Average()
    average.add(net(torch.ones(3, 2).cuda()).mean().item(), 3)
    average.exchange()
    return average.total / average.count


def case_average_on_card():
    join("nccl")
    torch.cuda.set_device(0)
    net = nn.Linear(2, 1).cuda()
    average = Average()
    average.add(net(torch.ones(3, 2).cuda()).mean().item(), 3)
    average.exchange_on(next(net.parameters()).device)
    return average.total / average.count


def case_gloo_takes_the_cpu():
    join("gloo")
    seen = torch.zeros(1)
    dist.all_reduce(seen)
    parts = [torch.zeros(1) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, seen)
    return torch.cat(parts)


def case_stop_flag():
    join("nccl")
    flag = torch.tensor(int(True))
    dist.broadcast(tensor=flag, src=0)  # raises
    return bool(flag)


def case_stop_flag_on_card():
    join("nccl")
    flag = torch.tensor(int(True), device="cuda:0")
    dist.broadcast(tensor=flag, src=0)
    return bool(flag)


def case_sizes_of_parts():
    join("nccl")
    rows = torch.rand(5, 2, device="cuda:0")
    length = torch.tensor([rows.shape[0]], device=rows.device)
    lengths = [torch.zeros(1, dtype=torch.long) for _ in range(dist.get_world_size())]
    dist.all_gather(lengths, length)  # raises
    return max(int(each) for each in lengths)


def case_sizes_of_parts_like():
    join("nccl")
    rows = torch.rand(5, 2, device="cuda:0")
    length = torch.tensor([rows.shape[0]], device=rows.device)
    lengths = [torch.zeros_like(length) for _ in range(dist.get_world_size())]
    dist.all_gather(lengths, length)
    return max(int(each) for each in lengths)


def exchanged(value):
    """For either backend."""
    value = torch.as_tensor(value, dtype=torch.float32)
    if dist.get_backend() == "nccl":
        value = value.cuda()
    dist.all_reduce(value)
    return value.cpu()


def case_backend_is_asked():
    join("nccl")
    return exchanged(3.0) + torch.zeros(1)


def case_backend_is_asked_of_gloo():
    join("gloo")
    return exchanged(3.0) + torch.zeros(1)


def case_reduced_after_cpu():
    join("nccl")
    scores = torch.rand(4, device="cuda:0").sum().cpu()
    dist.reduce(scores, dst=0)  # raises
    return scores.item()


def case_second_group_for_the_cpu():
    join("nccl")
    on_host = dist.new_group(backend="gloo")
    counts = torch.bincount(torch.tensor([0, 1, 1]))
    dist.all_reduce(counts, group=on_host)
    counts = counts.cuda()
    dist.all_reduce(counts)
    return counts


def case_group_of_the_same_kind():
    join("nccl")
    few = dist.new_group([0])
    counts = torch.bincount(torch.tensor([0, 1, 1]))
    dist.all_reduce(counts, group=few)  # raises
    return counts


@with_ranks
def case_norm_of_gradients():
    net = nn.Linear(3, 2).to("cuda:0")
    net(torch.ones(1, 3, device="cuda:0")).sum().backward()
    squares = torch.stack([p.grad.pow(2).sum() for p in net.parameters()])
    total = squares.sum()
    dist.all_reduce(total)
    return total.sqrt()


def case_objects_are_pickled():
    join("nccl")
    torch.cuda.set_device(0)
    found = [None]
    dist.all_gather_object(found, {"loss": torch.tensor(0.5)})
    return found[0]["loss"] + torch.ones(1)


def case_backend_of_the_machine():
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    join(backend)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    hits = torch.tensor([3.0, 4.0], device=device)
    dist.all_reduce(hits)
    seen = torch.tensor([3.0, 4.0])
    dist.all_reduce(seen)  # raises
    return hits / seen
