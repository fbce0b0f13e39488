import torch


class A:
    w = torch.ones(2)
    n = 3


class B(A):
    k = 2

    def go(self, x):
        return x + self.w  # raises


class C(B):
    def __init__(self):
        self.z = 1


def case_a():
    B().go(torch.ones(2).cuda())


def case_b():
    C().go(torch.ones(2).cuda())


def case_c():
    return C().w + torch.ones(2).cuda()  # raises


def case_d():
    return B.w + torch.ones(2).cuda()  # raises


def case_e():
    return C.w + torch.ones(2).cuda()  # raises
