import torch


def asked(x, properties=["energy"]):
    y = x.cuda()
    if "forces" in properties:
        return y + torch.ones(3)


def named(x, options={}):
    y = x.cuda()
    if "forces" in options:
        return y + torch.ones(3)


def each(x, sizes=[]):
    y = x.cuda()
    for size in sizes:
        y = y + torch.ones(3)
    return y


def left_out(x, sizes=[3]):
    y = x.cuda()
    if 3 not in sizes:
        return y
    return y + torch.ones(3)
