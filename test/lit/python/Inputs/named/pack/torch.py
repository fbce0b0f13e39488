import torch


class Layer(torch.nn.Module):
    pass
