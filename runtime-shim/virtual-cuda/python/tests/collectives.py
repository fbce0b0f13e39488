"""Two ranks, one device each: what torch.distributed offers over "nccl". An argument "one": both use cuda:0."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from releases import has

rank = int(os.environ["LOCAL_RANK"])
other = 1 - rank


def cuda(*values):
    return torch.tensor(values, device="cuda", dtype=torch.float32)


def expect(tensor, *values):
    assert tensor.tolist() == list(values), f"rank {rank}: {tensor} is not {values}"


def reductions():
    for operation, expected in (("SUM", 3), ("AVG", 1.5), ("MAX", 2), ("MIN", 1), ("PRODUCT", 2)):
        tensor = cuda(rank + 1.0)
        dist.all_reduce(tensor, op=getattr(dist.ReduceOp, operation))
        expect(tensor, expected)
    for dtype in (torch.float16, torch.bfloat16, torch.int64, torch.bool):
        tensor = torch.ones(2, device="cuda", dtype=dtype)
        dist.all_reduce(tensor)
        expect(tensor, *([True, True] if dtype == torch.bool else [2, 2]))
        parts = [torch.zeros(2, device="cuda", dtype=dtype) for _ in range(2)]
        dist.all_gather(parts, tensor)
        assert all(torch.equal(part, tensor) for part in parts)
    tensor = torch.ones(2, device="cuda", dtype=torch.bfloat16) + rank
    dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
    expect(tensor, 1.5, 1.5)
    for operation in ("BAND", "BOR", "BXOR"):
        try:
            dist.all_reduce(torch.ones(2, device="cuda", dtype=torch.bool), op=getattr(dist.ReduceOp, operation))
            raise AssertionError("not refused")
        except (RuntimeError, ValueError) as error:
            assert f"Cannot use ReduceOp.{operation} with NCCL" in str(error), error
    tensor = cuda(rank + 1.0)
    dist.reduce(tensor, 1)
    expect(tensor, 3 if rank == 1 else 1)
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    expect(tensor, 4)


def gatherings():
    parts = [cuda(0, 0) for _ in range(2)]
    dist.all_gather(parts, cuda(rank, 7))
    expect(torch.stack(parts), [0, 7], [1, 7])
    if not torch.__version__.startswith("1."):
        parts = [cuda(0), cuda(0, 0)]
        dist.all_gather(parts, cuda(*[rank + 1.0] * (rank + 1)))
        expect(parts[0], 1)
        expect(parts[1], 2, 2)
        parts = [cuda(0, 0) for _ in range(2)]
    whole = cuda(0, 0, 0, 0)
    dist.all_gather_into_tensor(whole, cuda(rank, 7))
    expect(whole, 0, 7, 1, 7)
    dist.gather(cuda(rank), [*parts[0].chunk(2)] if rank == 0 else None, dst=0)
    part = cuda(0, 0)
    dist.reduce_scatter_tensor(part, cuda(0, 1, 2, 3))
    expect(part, *([0, 2], [4, 6])[rank])
    dist.reduce_scatter(part, [cuda(0, 0), cuda(1, 1)])
    expect(part, *([0, 0], [2, 2])[rank])
    dist.scatter(part, [cuda(1, 2), cuda(3, 4)] if rank == 0 else None, src=0)
    expect(part, *([1, 2], [3, 4])[rank])


def exchanges():
    mine, theirs = cuda(rank, rank + 10), cuda(0, 0)
    dist.all_to_all_single(theirs, mine)
    expect(theirs, *([0, 1], [10, 11])[rank])
    outputs = [cuda(0), cuda(0)]
    dist.all_to_all(outputs, list(mine.chunk(2)))
    expect(torch.cat(outputs), *([0, 1], [10, 11])[rank])
    for request in dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, other), dist.P2POp(dist.irecv, theirs, other)]):
        request.wait()
    expect(theirs, other, other + 10)
    if rank == 0:
        dist.send(mine, 1)
    else:
        dist.recv(theirs, 0)
        expect(theirs, 0, 10)
    dist.broadcast(mine, 1)
    expect(mine, 1, 11)


def objects_and_groups():
    dist.barrier(device_ids=[rank])
    dist.barrier()
    told = [None, None]
    dist.all_gather_object(told, {"rank": rank})
    assert told == [{"rank": 0}, {"rank": 1}]
    box = [rank]
    dist.broadcast_object_list(box, src=1)
    assert box == [1]
    tensor = cuda(1)
    dist.all_reduce(tensor, group=dist.new_group([0, 1]))
    expect(tensor, 2)
    if has("distributed.Backend.backend_capability"):
        both = dist.new_group(backend="cpu:gloo,cuda:nccl")
        for mixed in (torch.ones(1), cuda(1)):
            dist.all_reduce(mixed, group=both)
            expect(mixed, 2)
    alone = [dist.new_group([0]), dist.new_group([1])][rank]
    dist.all_reduce(tensor, group=alone)
    expect(tensor, 2)
    try:
        dist.all_reduce(torch.ones(1))
        raise AssertionError("a tensor of the CPU was accepted")
    except RuntimeError as error:
        texts = "No backend type associated with device type cpu", "Tensors must be CUDA and dense"
        assert any(text in str(error) for text in texts), error


def training():
    torch.manual_seed(rank)
    for options in ({}, {"gradient_as_bucket_view": True}, {"find_unused_parameters": True}):
        model = DistributedDataParallel(nn.Linear(3, 2).cuda(), device_ids=[rank], **options)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            model(torch.randn(4, 3, device="cuda")).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        weights = [torch.empty_like(model.module.weight) for _ in range(2)]
        dist.all_gather(weights, model.module.weight.detach())
        assert torch.equal(*weights)


def synchronized_batch_norm():
    """The ranks' halves of a batch give what one process gives for all of it."""
    torch.manual_seed(0)
    batch = torch.randn(4, 3, 2, 2, device="cuda")
    plain = nn.BatchNorm2d(3).cuda()
    whole = batch.clone().requires_grad_()
    (plain(whole) ** 3).sum().backward()
    halves = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm2d(3)).cuda()
    half = batch[2 * rank : 2 * rank + 2].clone().requires_grad_()
    model = DistributedDataParallel(halves, device_ids=[rank])
    (model(half) ** 3).sum().backward()
    assert torch.allclose(half.grad, whole.grad[2 * rank : 2 * rank + 2], atol=1e-5)
    assert torch.allclose(halves.running_var, plain.running_var)
    assert torch.allclose(halves.running_mean, plain.running_mean)
    assert torch.allclose(2 * halves.weight.grad, plain.weight.grad, atol=1e-4)


def sharded_training():
    from torch.distributed.fsdp import FullyShardedDataParallel

    model = FullyShardedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), device_id=rank)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(4, 4, device="cuda")).sum().backward()
    optimizer.step()


def sharded_modules():
    from torch.distributed.fsdp import fully_shard

    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2)).cuda()
    for part in (*model, model):
        fully_shard(part)
    model(torch.randn(4, 4, device="cuda")).sum().backward()
    torch.optim.AdamW(model.parameters()).step()


def sharded_optimizer():
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = DistributedDataParallel(nn.Linear(4, 2).cuda(), device_ids=[rank])
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=0.1)
    model(torch.ones(1, 4, device="cuda")).sum().backward()
    optimizer.step()


if "one" not in sys.argv:
    torch.cuda.set_device(rank)
dist.init_process_group("nccl")
assert dist.is_nccl_available() and dist.get_backend() == "nccl"
for part in (
    reductions,
    gatherings,
    exchanges,
    objects_and_groups,
    training,
    synchronized_batch_norm,
    *([] if torch.__version__.startswith("1.") else [sharded_training, sharded_modules]),  # not in Python 3.11
    sharded_optimizer,
):
    part()
dist.destroy_process_group()
print("rank", rank, "is done")
