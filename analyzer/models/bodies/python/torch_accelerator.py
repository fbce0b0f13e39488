"""The accelerator that PyTorch was built for: CUDA, here."""

import dt
import torch


@dt.models("torch.accelerator.is_available")
def is_available():
    return torch.cuda.is_available()


@dt.models("torch.accelerator.current_accelerator")
def current_accelerator(check_available=False):
    return None if check_available and not torch.cuda.is_available() else torch.device("cuda")


@dt.models("torch.accelerator.device_count")
def device_count():
    return torch.cuda.device_count()


@dt.models("torch.accelerator.current_device_index", "torch.accelerator.current_device_idx")
def current_device_index():
    return torch.cuda.current_device()


@dt.models("torch.accelerator.set_device_index", "torch.accelerator.set_device_idx")
def set_device_index(device):
    torch.cuda.set_device(device)


@dt.models("torch.accelerator.device_index")
def device_index(device):
    return torch.cuda.device(device)
