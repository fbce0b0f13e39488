import torch
from pack import noise

noise(torch.ones(3, device="cuda"))
