import torch


def scaled(x, mean):
    if not torch.onnx.is_in_onnx_export():
        mean = torch.as_tensor(mean, device=x.device)
    return x - mean


def traced(x, mean):
    if torch.jit.is_scripting() or torch.jit.is_tracing():
        return x - mean
    return x - mean.to(x)


def case_moved_where_nothing_is_exported():
    return scaled(torch.ones(2, device="cuda:0"), torch.zeros(2))


def case_moved_where_nothing_is_traced():
    return traced(torch.ones(2, device="cuda:0"), torch.zeros(2))


def case_not_moved():
    return torch.ones(2, device="cuda:0") - torch.zeros(2)  # raises
