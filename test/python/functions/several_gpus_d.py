"""Work spread over several GPUs by hand."""
import copy
import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F

FIRST, SECOND = torch.device("cuda:0"), torch.device("cuda:1")


# --- layers on a cycle of devices


class Staggered(nn.Module):
    def __init__(self, dim, depth, devices):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(dim, dim).to(d) for d, _ in zip(itertools.cycle(devices), range(depth)))

    def enter(self, x, layer):
        return x

    def forward(self, x):
        x = x.to(self.layers[0].weight.device)
        for layer in self.layers:
            x = layer(self.enter(x, layer)).relu()  # raises
        return x


class StaggeredMoving(Staggered):
    def enter(self, x, layer):
        return x.to(layer.weight.device)


def case_staggered():
    return Staggered(4, 3, [FIRST, SECOND])(torch.randn(2, 4))


def case_staggered_on_one():
    return Staggered(4, 3, [SECOND])(torch.randn(2, 4))


def case_staggered_moving():
    StaggeredMoving(4, 3, [FIRST, SECOND])(torch.randn(2, 4)).sum().backward()


# --- scatter, apply, gather


def replicate(module, devices):
    return [copy.deepcopy(module).to(d) for d in devices]


def parallel_apply(replicas, inputs, devices):
    return [m(x.to(d)) for m, x, d in zip(replicas, inputs, devices)]


def gather(outputs, target=None):
    if target is not None:
        outputs = [o.to(target) for o in outputs]
    return torch.cat(outputs, dim=0)  # raises


def spread(x, target=None):
    devices = (FIRST, SECOND)
    outputs = parallel_apply(replicate(nn.Linear(4, 2), devices), x.chunk(2), devices)
    return gather(outputs, target)


def case_gathered_nowhere():
    return spread(torch.randn(6, 4))


def case_gathered_on_second():
    return spread(torch.randn(6, 4), SECOND)


def replica_losses():
    for d in (FIRST, SECOND):
        net = nn.Linear(4, 3).to(d)
        yield F.cross_entropy(net(torch.randn(5, 4, device=d)), torch.arange(5, device=d) % 3)


def case_sum_of_losses():
    loss = sum(replica_losses())  # raises
    loss.backward()


def case_sum_of_losses_on_first():
    sum(loss.to(FIRST) for loss in replica_losses()).backward()


def case_mean_of_losses_on_host():
    losses = [loss.detach().cpu() for loss in replica_losses()]
    return torch.stack(losses).mean() * torch.ones(2, device=SECOND)


# --- gradients


def ring(values):
    """Each in turn passes its running sum on to the next."""
    running = values[0].clone()
    for value in values[1:]:
        running = running.to(value.device) + value
    return running


def averaged_gradients(nets, how):
    for params in zip(*(n.parameters() for n in nets)):
        mean = how([p.grad for p in params]) / len(params)
        for p in params:
            p.grad.copy_(mean)


def backward_everywhere():
    nets = replicate(nn.Linear(4, 2), (FIRST, SECOND, FIRST))
    for net in nets:
        net(torch.randn(3, 4, device=net.weight.device)).pow(2).sum().backward()
    return nets


def case_ring():
    averaged_gradients(backward_everywhere(), ring)


def case_stacked():
    averaged_gradients(backward_everywhere(), lambda grads: torch.stack(grads).sum(0))  # raises


def case_replicas_in_step():
    one, other = replicate(nn.Linear(4, 2), (FIRST, SECOND))
    return torch.equal(one.weight, other.weight)  # raises


def case_replicas_in_step_on_host():
    states = [{k: v.cpu() for k, v in n.state_dict().items()} for n in replicate(nn.Linear(4, 2), (FIRST, SECOND))]
    return all(torch.equal(states[0][k], states[1][k]) for k in states[0])


# --- the current device


class NoisyInput:
    def __init__(self, std):
        self.std = std

    def noise(self, x):
        return self.std * torch.randn(x.shape, device="cuda")

    def __call__(self, x):
        return x + self.noise(x)  # raises


def case_noise_in_context():
    x = torch.zeros(3, 4, device=SECOND)
    with torch.cuda.device(1):
        return NoisyInput(0.1)(x)


def case_noise_of_input():
    x = torch.zeros(3, 4, device=SECOND)
    with torch.cuda.device_of(x):
        return NoisyInput(0.1)(x)


def case_noise_out_of_context():
    with torch.cuda.device(SECOND):
        x = torch.zeros(3, 4, device="cuda")
    return NoisyInput(0.1)(x)


class Worker:
    """The part of one rank; started for each rank in a process of its own."""

    def __init__(self, rank):
        self.rank = rank
        self.net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3)).cuda(rank)

    def batch(self):
        return torch.randn(5, 4), torch.arange(5) % 3

    def step(self):
        x, y = (t.cuda(self.rank) for t in self.batch())
        F.cross_entropy(self.net(x), y).backward()
        return self.reduce()

    def reduce(self):
        return sum(p.grad.norm().item() for p in self.net.parameters())


class EvaluatingWorker(Worker):
    def step(self):
        images, labels = self.batch()
        images, labels = images.cuda(), labels.cuda(non_blocking=True)
        hits = self.net(images).argmax(1) == labels  # raises
        return hits.float().mean().item()


def case_worker_of_second_rank():
    return Worker(1).step()


def case_evaluation_of_first_rank():
    return EvaluatingWorker(0).step()


def case_evaluation_of_second_rank():
    return EvaluatingWorker(1).step()


# --- tables shared by replicas

_positions = {}
_positions_by_device = {}


def sinusoid(length, dim):
    angle = torch.arange(length)[:, None] / 100.0 ** (torch.arange(dim)[None] / dim)
    return angle.sin()


def positions(length, dim, device):
    if length not in _positions:
        _positions[length] = sinusoid(length, dim).to(device)
    return _positions[length]


def positions_each(length, dim, device):
    return _positions_by_device.setdefault((length, device), sinusoid(length, dim).to(device))


class Positioned(nn.Module):
    def __init__(self, lookup):
        super().__init__()
        self.lookup = lookup
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return x + self.scale * self.lookup(x.size(1), x.size(2), x.device)  # raises


def case_positions_shared():
    x = torch.randn(4, 3, 2)
    return parallel_apply(replicate(Positioned(positions), (FIRST, SECOND)), x.chunk(2), (FIRST, SECOND))


def case_positions_by_device():
    x = torch.randn(4, 3, 2)
    return parallel_apply(replicate(Positioned(positions_each), (FIRST, SECOND)), x.chunk(2), (FIRST, SECOND))


# --- tensors cut over the GPUs


class ShardedEmbedding:
    def __init__(self, rows, dim, devices, follow=True):
        self.per_shard, self.follow = rows // len(devices), follow
        self.shards = [nn.Embedding(self.per_shard, dim).to(d) for d in devices]

    def __call__(self, ids):
        out = torch.zeros(*ids.shape, self.shards[0].embedding_dim, device=ids.device)
        for number, shard in enumerate(self.shards):
            mine = ids // self.per_shard == number
            local = ids[mine] % self.per_shard
            if self.follow:
                local = local.to(shard.weight.device)
            out[mine] = shard(local).to(out)  # raises
        return out


def case_sharded_embedding():
    return ShardedEmbedding(8, 3, [FIRST, SECOND])(torch.tensor([[0, 5], [7, 1]], device=FIRST))


def case_sharded_embedding_of_local_ids():
    return ShardedEmbedding(8, 3, [FIRST, SECOND], follow=False)(torch.tensor([[0, 5], [7, 1]], device=FIRST))


def column_parallel(x, weight, bias, devices):
    """y = x W + b with the columns of W on several devices; y on the device of x."""
    parts = [x.to(d) @ w.to(d) for w, d in zip(weight.chunk(len(devices), dim=1), devices)]
    pieces = bias.chunk(len(devices))
    outs = [torch.add(part, piece) for part, piece in zip(parts, pieces)]  # raises
    return torch.cat([o.to(x.device) for o in outs], dim=1)


def case_column_parallel():
    return column_parallel(torch.randn(2, 4, device=FIRST), torch.randn(4, 6), torch.zeros(6, device=FIRST), [FIRST, SECOND])
