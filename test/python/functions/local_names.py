import torch
import torch.nn.functional as F


def case_defined_behind():
    def outer(x):
        return helper(x)

    def helper(x):
        return x + torch.ones(2)  # raises

    return outer(torch.ones(2, device="cuda"))


def case_recursion():
    def down(x, n):
        if n == 0:
            return x + torch.ones(2)  # raises
        return down(x * 2, n - 1)

    return down(torch.ones(2, device="cuda"), 2)


def case_bound_behind():
    def loss():
        return F.mse_loss(x, y)

    x, y = torch.ones(2), torch.ones(2)
    x, y = x.cuda(), y.cuda()
    return loss()


def case_moved_behind():
    y = torch.ones(2, device="cuda")
    x = torch.ones(2, device="cuda")

    def loss():
        return F.mse_loss(x, y)  # raises

    y = y.cpu()
    return loss()


def case_class_of_itself():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

        def to(self, device):
            return Pair(self.a.to(device), self.b)

        def sum(self):
            return self.a + self.b  # raises

    return Pair(torch.ones(2), torch.ones(2)).to("cuda").sum()


def case_imported_here():
    import math
    import torch.nn.functional as functional
    from functools import reduce
    from itertools import chain

    parts = list(chain([torch.ones(2)], [torch.ones(2).cuda()]))
    functional.mse_loss(parts[1], torch.zeros(2, device="cuda"))
    return reduce(lambda a, b: a + b * math.pi, parts)  # raises


def case_imported_in_a_method():
    class Norms:
        def norms(self, tensors):
            from torch import linalg

            return torch.stack([linalg.vector_norm(t) for t in tensors])  # raises

    return Norms().norms([torch.ones(2), torch.ones(2).cuda()])
