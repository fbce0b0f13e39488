"""accelerate makes the GPU of the rank current."""
import os

import torch
from accelerate import Accelerator
from torch import nn


def main():
    local = int(os.environ.get("LOCAL_RANK", -1))
    print("rank", local)
    net = nn.Linear(4, 3)
    accelerator = Accelerator()
    net.to(accelerator.device)
    print(net(torch.rand(2, 4).to("cuda")))


if __name__ == "__main__":
    main()
