import torch

from pack.ops import keep

print(keep(torch.zeros(5), torch.zeros(5)))
