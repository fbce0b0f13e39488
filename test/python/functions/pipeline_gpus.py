"""A model spread over several GPUs: pipeline stages, sharded layers, experts and gathered statistics."""
import contextlib
import itertools
import tempfile
from collections import OrderedDict
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Union

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

Device = Union[str, torch.device]


@dataclass
class ParallelConfig:
    stages: int = 4
    width: int = 8
    classes: int = 4
    micro_batches: int = 2
    first_gpu: int = 0

    def device(self, stage: int) -> torch.device:
        return torch.device("cuda", self.first_gpu + stage)


class Block(nn.Module):
    def __init__(self, width, skip=False):
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(width), nn.Linear(width, width)
        self.gate = nn.Linear(2 * width, width) if skip else None

    def forward(self, x, skip=None):
        h = self.fc(self.norm(x)).relu()
        if self.gate is not None and skip is not None:
            h = self.gate(torch.cat([h, skip], dim=-1))  # raises
        return x + h


class PipelineStage(nn.Module):
    def __init__(self, module: nn.Module, device: Device):
        super().__init__()
        self.device = torch.device(device)
        self.module = module.to(self.device)  # raises

    def forward(self, x, **kwargs):
        return self.module(x.to(self.device, non_blocking=True), **kwargs)


class Pipeline(nn.Module):
    def __init__(self, cfg: ParallelConfig, long_skip=False):
        super().__init__()
        self.cfg, self.long_skip = cfg, long_skip
        self.stages = nn.ModuleList([PipelineStage(Block(cfg.width, long_skip and i == cfg.stages - 1), cfg.device(i))
                                     for i in range(cfg.stages)])
        self.head = nn.Linear(cfg.width, cfg.classes).to(cfg.device(cfg.stages - 1))

    @property
    def input_device(self):
        return self.stages[0].device

    @property
    def output_device(self):
        return self.head.weight.device

    def forward(self, x):
        outputs = []
        for micro in x.chunk(self.cfg.micro_batches):
            first = micro = self.stages[0](micro)
            for stage in self.stages[1:-1]:
                micro = stage(micro)
            micro = self.stages[-1](micro, skip=first) if self.long_skip else self.stages[-1](micro)
            outputs.append(self.head(micro))
        return torch.cat(outputs)


class AllGather:
    """Simulates a gather of one tensor for each rank held by this process."""

    def __init__(self, destination: Optional[Device] = None):
        self.destination = destination

    def __call__(self, tensors: Sequence[torch.Tensor]):
        if self.destination is not None:
            tensors = [t.to(self.destination) for t in tensors]
        return torch.cat(list(tensors), dim=0)  # raises


class SplitEmbedding(nn.Module):
    def __init__(self, vocab, dim, devices: Sequence[Device]):
        super().__init__()
        self.per, self.devices = -(-vocab // len(devices)), list(devices)
        self.shards = nn.ModuleList([nn.Embedding(self.per, dim).to(d) for d in devices])

    def forward(self, tokens):
        total = None
        for i, (shard, device) in enumerate(zip(self.shards, self.devices)):
            local = tokens.to(device) - i * self.per
            inside = (local >= 0) & (local < self.per)
            part = shard(local.clamp(0, self.per - 1)) * inside.unsqueeze(-1)
            total = part if total is None else total + part.to(total.device)
        return total


class ColumnLinear(nn.Module):
    def __init__(self, dim_in, dim_out, devices):
        super().__init__()
        self.shards = nn.ModuleList([nn.Linear(dim_in, dim_out // len(devices)).to(d) for d in devices])

    def forward(self, x):
        return [shard(x.to(shard.weight.device)) for shard in self.shards]


class RowLinear(nn.Module):
    def __init__(self, dim_in, dim_out, devices):
        super().__init__()
        self.shards = nn.ModuleList([nn.Linear(dim_in // len(devices), dim_out, bias=False).to(d) for d in devices])
        self.bias = nn.Parameter(torch.zeros(dim_out, device=devices[0]))

    def forward(self, parts: List[torch.Tensor], reduce_to=None):
        partial = [shard(part) for shard, part in zip(self.shards, parts)]
        if reduce_to is not None:
            partial = [p.to(reduce_to) for p in partial]
        return sum(partial[1:], partial[0]) + self.bias


class RotaryCache:
    """Tables that the layers of one GPU share."""

    def __init__(self, dim, by="device"):
        self.dim, self.by = dim, by
        self._tables: Dict[str, torch.Tensor] = {}

    def get(self, x):
        key = str(x.device) if self.by == "device" else x.device.type
        if key not in self._tables:
            steps = torch.arange(x.shape[0], device=x.device, dtype=x.dtype)
            self._tables[key] = torch.outer(steps, torch.ones(self.dim, device=x.device) / self.dim).cos()
        return self._tables[key]


class CachedStage(nn.Module):
    def __init__(self, width, cache: RotaryCache, device):
        super().__init__()
        self.proj, self.cache = nn.Linear(width, width).to(device), cache

    def forward(self, x):
        x = self.proj(x.to(self.proj.weight.device))
        return x * self.cache.get(x)  # raises


@contextlib.contextmanager
def _process_group():
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("nccl", init_method=f"file://{folder}/store", rank=0, world_size=1)
        yield dist.get_world_size()
        dist.destroy_process_group()


def _gather_metrics(metrics: Dict[str, torch.Tensor], world):
    gathered = {}
    for name, value in metrics.items():
        rows = [torch.zeros_like(value) for _ in range(world)]
        dist.all_gather(rows, value)  # raises
        gathered[name] = torch.stack(rows).mean(0)
    return gathered


@contextlib.contextmanager
def _current(device):
    previous = torch.cuda.current_device()
    torch.cuda.set_device(device)
    try:
        yield device
    finally:
        torch.cuda.set_device(previous)


def _local_bias(scores):
    return torch.ones(scores.shape[-2:], device="cuda").tril().log()


def _gpus(count=4):
    return [torch.device(f"cuda:{i}") for i in range(count)]


def case_pipeline_training():
    model = Pipeline(ParallelConfig())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = torch.randn(6, 8).to(model.input_device), torch.randint(0, 4, (6,)).to(model.output_device)
    for _ in range(2):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def case_pipeline_targets():
    model = Pipeline(ParallelConfig(stages=2))
    batch = {"x": torch.randn(6, 8), "y": torch.randint(0, 4, (6,))}
    batch = {k: v.cuda() for k, v in batch.items()}
    loss = F.cross_entropy(model(batch["x"]), batch["y"])  # raises
    loss.backward()


def case_pipeline_long_skip():
    model = Pipeline(ParallelConfig(stages=3), long_skip=True)
    model(torch.randn(4, 8, device=model.input_device))


def case_pipeline_beside_teacher():
    Pipeline(ParallelConfig(stages=3, first_gpu=1))(torch.randn(4, 8))
    Pipeline(ParallelConfig(stages=4, first_gpu=1))(torch.randn(4, 8))


def case_gathered_embeddings():
    features = [F.normalize(nn.Linear(8, 4).to(d)(torch.randn(2, 8, device=d)), dim=-1) for d in _gpus()]
    gathered = AllGather("cuda:0")(features)
    logits = features[0] @ gathered.t() / 0.07
    F.cross_entropy(logits, torch.arange(2, device=logits.device)).backward()


def case_gathered_per_rank():
    features = [torch.randn(2, 8, device=d) for d in _gpus(2)]
    AllGather()([f.mean(0, keepdim=True) for f in features[:1]] * 2)
    AllGather()(features)


def case_tensor_parallel_mlp():
    devices = _gpus(2)
    embed, up, down = SplitEmbedding(20, 8, devices), ColumnLinear(8, 16, devices), RowLinear(16, 8, devices)
    x = embed(torch.randint(0, 20, (3, 5)))
    down([p.relu() for p in up(x)], reduce_to=devices[0]).sum().backward()
    assert {p.grad.device for p in up.parameters()} == set(devices)


def case_shared_cache():
    model = nn.Sequential(*[CachedStage(8, cache, d) for cache in [RotaryCache(8)] for d in _gpus(2)])
    model(torch.randn(5, 8))
    by_type = RotaryCache(8, by="type")
    nn.Sequential(CachedStage(8, by_type, "cuda:2"), CachedStage(8, by_type, "cuda:3"))(torch.randn(5, 8))


def case_bias_on_current_device():
    for device in _gpus(2):
        scores = torch.randn(2, 4, 4, device=device)
        with _current(device):
            probs = (scores + _local_bias(scores)).softmax(-1)
        assert probs.device == device


def case_distributed_metrics():
    logits, labels = torch.randn(6, 4, device="cuda"), torch.randint(0, 4, (6,), device="cuda")
    confusion = torch.bincount(labels * 4 + logits.argmax(-1), minlength=16).float()
    with _process_group() as world:
        _gather_metrics({"loss": F.cross_entropy(logits, labels), "confusion": confusion}, world)


def case_distributed_sample_count():
    loader = [torch.randn(3, 4), torch.randn(2, 4)]
    seen, total = sum(len(b) for b in loader), torch.zeros(1, device="cuda")
    for batch in loader:
        total += batch.cuda().pow(2).sum()
    with _process_group() as world:
        _gather_metrics({"total": total, "seen": torch.tensor([seen])}, world)


def case_state_between_gpus():
    source, target = Pipeline(ParallelConfig(stages=2)), Pipeline(ParallelConfig(stages=2, first_gpu=2))
    target.load_state_dict(source.state_dict())
    for a, b in zip(source.parameters(), target.parameters()):
        b.data.mul_(0.5).add_(a.data.to(b.device), alpha=0.5)
    flat = OrderedDict((n, p.norm()) for n, p in itertools.islice(target.named_parameters(), 3))
    assert torch.stack(list(flat.values())).device == target.input_device
