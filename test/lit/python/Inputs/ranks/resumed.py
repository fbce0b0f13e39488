import torch
from accelerate import Accelerator


def resumed(path):
    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.AdamW(model.parameters())
    optimizer.load_state_dict(torch.load(path, map_location="cpu"))
    return model, optimizer


def prepared(path):
    accelerator = Accelerator()
    model, optimizer = accelerator.prepare(*resumed(path))
    accelerator.backward(model(torch.ones(2, 3, device=accelerator.device)).sum())
    optimizer.step()


def brought(path):
    model, optimizer = resumed(path)
    model.cuda()
    for state in optimizer.state.values():
        for key, value in state.items():
            state[key] = value.cuda()
    model(torch.ones(2, 3, device="cuda")).sum().backward()
    optimizer.step()


def left(path):
    model, optimizer = resumed(path)
    model.cuda()
    model(torch.ones(2, 3, device="cuda")).sum().backward()
    optimizer.step()
