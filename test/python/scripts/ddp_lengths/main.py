# broken
# Runs alone; under a launcher DDP itself moves every tensor argument of forward to the rank's GPU.
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from sentiment import Net, corpus

rank, world = int(os.getenv("LOCAL_RANK", 0)), int(os.getenv("WORLD_SIZE", 1))
torch.cuda.set_device(rank)
net = Net().cuda()
if world > 1:
    dist.init_process_group(backend="nccl", init_method="env://")
    net = DistributedDataParallel(net, device_ids=[rank])
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for ids, lens, y in corpus(rank, world):
    # lengths have to stay on the host
    prob = net(ids.cuda(), lens)
    loss = torch.nn.functional.binary_cross_entropy(prob, y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    if rank == 0:
        print("%.4f" % loss.item())
if world > 1:
    dist.destroy_process_group()
