import torch


def case_a():
    x = torch.ones(2, 4, 3).cuda()
    x[1:, [1, 2]] = torch.ones(2, 3)  # raises


def case_b():
    x = torch.ones(2, 4, 3).cuda()
    x[1:, 1:3] = torch.ones(2, 3)


def case_c():
    x = torch.ones(4, 3).cuda()
    x[[1, 2]] = torch.ones(2, 3)  # raises


def case_d():
    x = torch.ones(4, 3).cuda()
    x[1, 2] = torch.ones(())
    x[(1, 2)] = torch.ones(())
    x[None, 1] = torch.ones(3)
    x[...] = torch.ones(3)


def case_e():
    x = torch.ones(4, 3).cuda()
    x[range(2)] = torch.ones(2, 3)  # raises


def case_f():
    import numpy as np
    x = torch.ones(4, 3).cuda()
    x[np.array([1, 2])] = torch.ones(2, 3)  # raises


def case_g():
    x = torch.ones(4, 3).cuda()
    y = x[[1, 2]] + x[:, [1]].mean()
    x[torch.tensor(1)] = torch.ones(3)
    x[torch.tensor([1])] = torch.ones(3)  # raises
    return y


def case_h():
    x = torch.ones(4, 3).cuda()
    x[x[:, 0] > 0] = torch.ones(3)  # raises


def case_i():
    x = torch.ones(4, 3).cuda()
    x[True] = torch.ones(3)
