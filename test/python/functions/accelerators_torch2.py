"""torch.accelerator is CUDA where there is a GPU."""

import torch
from torch import nn


def case_model_on_accelerator():
    device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
    model = nn.Linear(3, 3).to(device)
    return model(torch.zeros(2, 3, device=device))


def case_input_left():
    device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else "cpu"
    model = nn.Linear(3, 3).to(device)
    return model(torch.zeros(2, 3))  # raises


def case_same_question():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x = torch.zeros(3, device=device)
    if not torch.accelerator.is_available():
        x = x + torch.ones(3)
    return x


def case_second_accelerator():
    kind = torch.accelerator.current_accelerator()
    x = torch.zeros(3, device=f"{kind}:1")
    return x + torch.ones(3, device=f"{kind.type}:0")  # raises


def case_index_set():
    torch.accelerator.set_device_index(1)
    x = torch.zeros(3, device="cuda")
    index = torch.accelerator.current_device_index()
    return x + torch.ones(3, device=torch.device("cuda", index))
