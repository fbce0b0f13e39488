import os
from dataclasses import dataclass, field

import launcher
import torch
import torch.distributed as dist


@dataclass
class Options:
    cuda: bool = True
    track: bool = False
    world_size: int = 1
    device_ids: list = field(default_factory=list)


if __name__ == "__main__":
    args = launcher.options(Options)
    local_rank = int(os.getenv("LOCAL_RANK", "0"))
    args.world_size = int(os.getenv("WORLD_SIZE", "1"))
    if args.world_size > 1:
        dist.init_process_group("gloo", rank=local_rank, world_size=args.world_size)
    if local_rank == 0:
        if args.track:
            launcher.track(vars(args))
        print("\n".join([f"{key}: {value}" for key, value in vars(args).items()]))
    if len(args.device_ids) > 0:
        device = torch.device(f"cuda:{args.device_ids[local_rank]}" if torch.cuda.is_available() and args.cuda else "cpu")
    else:
        count = torch.cuda.device_count()
        if count < args.world_size:
            device = torch.device("cuda" if torch.cuda.is_available() and args.cuda else "cpu")
        else:
            device = torch.device(f"cuda:{local_rank}" if torch.cuda.is_available() and args.cuda else "cpu")
    net = torch.nn.Linear(2, 2).to(device)
    net(torch.ones(2).to(device))
