import torch

DEVICE = torch.device('cpu')


def set_device(index):
    global DEVICE
    if index >= 0 and torch.cuda.is_available():
        DEVICE = torch.device('cuda', index)
        torch.cuda.set_device(DEVICE)
    return DEVICE
