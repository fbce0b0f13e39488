#!/usr/bin/env python3
"""What step_bench.cpp measures, with PyTorch's own DistributedDataParallel: the same model, batch and sizes.

Start it with RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun sets them.
"""

import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("layers", 24), ("width", 1024), ("batch", 256), ("steps", 20), ("megabytes", 256)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if gpu else "gloo")
    finish = torch.cuda.synchronize if gpu else lambda: None

    def median_seconds(rounds, steps, step):
        times = []
        for count in range(rounds + 1):  # the first warms up
            dist.barrier()
            finish()
            begin = time.perf_counter()
            for _ in range(steps):
                step()
            finish()
            if count:
                times.append((time.perf_counter() - begin) / steps)
        return statistics.median(times)

    def show(metric, value, **more):
        if dist.get_rank() == 0:
            print(json.dumps({"metric": metric, "value": value, "ranks": dist.get_world_size(),
                              "backend": dist.get_backend(), **more}), flush=True)

    torch.manual_seed(1)
    layers = []
    for _ in range(options.layers):
        layers += [torch.nn.Linear(options.width, options.width), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers).to(device)
    model = DistributedDataParallel(net, device_ids=[device] if gpu else None, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(net.parameters(), 1e-3)
    batch = torch.randn(options.batch, options.width, device=device)

    def train_step():
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    show("ddp_step_ms", median_seconds(7, options.steps, train_step) * 1e3)
    megabytes = 1
    while megabytes <= options.megabytes and dist.get_world_size() > 1:
        tensor = torch.zeros(megabytes << 18, device=device)
        seconds = median_seconds(5, 5, lambda: dist.all_reduce(tensor))  # pylint: disable=cell-var-from-loop
        ranks = dist.get_world_size()
        show("all_reduce_GBps", (megabytes << 20) / seconds * 2 * (ranks - 1) / ranks / 1e9, bytes=megabytes << 20)
        megabytes *= 4
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
