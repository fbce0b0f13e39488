import numpy as np
import torch
import torch.nn.functional as F


def on_gpu():
    return torch.ones(4, 3, device="cuda")



def case_a1():
    return on_gpu() + torch.ones(4, 3).std(dim=0)  # raises


def case_a2():
    return on_gpu() + torch.ones(4, 3).var(0)  # raises


def case_a3():
    return on_gpu() + torch.std(torch.ones(4, 3), dim=0)  # raises


def case_a4():
    return on_gpu() + torch.ones(4, 3).std(0, keepdim=True)  # raises


def case_a5():
    return on_gpu() + torch.ones(4, 3).norm(dim=1, keepdim=True)  # raises


def case_a6():
    return on_gpu() + torch.ones(4, 3).var(dim=0, unbiased=False)  # raises


def case_a7():
    return on_gpu() + torch.stack([torch.ones(3)] * 4)  # raises


def case_a8():
    axes = [torch.ones(3), torch.ones(3)]
    return on_gpu() + torch.cartesian_prod(*axes)  # raises


def case_a9():
    axes = [torch.ones(4, 3), torch.ones(4, 3)]
    return on_gpu() + torch.add(*axes)  # raises


def case_b1():
    return on_gpu() + torch.broadcast_tensors(torch.ones(3), torch.ones(4, 3))[1]  # raises


def case_b2():
    a, b = torch.broadcast_tensors(torch.ones(3), torch.ones(4, 3))
    return on_gpu() + a  # raises


def case_b5():
    a = torch.std_mean(torch.ones(4, 3), dim=0)[0]
    return on_gpu() + a  # raises


def case_b6():
    return on_gpu() + torch.ones(4, 3).cumsum(0)  # raises


def case_b7():
    return on_gpu() + torch.linalg.norm(torch.ones(4, 3), dim=1, keepdim=True)  # raises


def case_b8():
    return on_gpu() + torch.einsum("ij,j->ij", torch.ones(4, 3), torch.ones(3))  # raises


def case_b9():
    return on_gpu() + F.one_hot(torch.zeros(4).long(), 3)  # raises


def case_c1():
    return on_gpu() + torch.logsumexp(torch.ones(4, 3, 2), -1)  # raises


def case_c2():
    return on_gpu() + torch.ones(4, 3).sort(dim=0).values  # raises


def case_c3():
    return on_gpu() + torch.ones(4, 3).topk(3).values  # raises


def case_c4():
    return on_gpu() + torch.unique(torch.ones(3))  # raises


def case_c5():
    v, i = torch.unique(torch.ones(3), return_inverse=True)
    return on_gpu() + v  # raises


def case_c6():
    return on_gpu() + torch.ones(4, 3, 2).amax(-1)  # raises


def case_c7():
    return on_gpu() + torch.ones(4, 3).float().half().to(torch.float32).type(torch.float32)  # raises


def case_c8():
    return on_gpu() + torch.meshgrid(torch.ones(4), torch.ones(3), indexing="ij")[0]  # raises


def case_c9():
    return on_gpu() + torch.ones(12).reshape(4, -1).contiguous().view_as(torch.ones(4, 3))  # raises


def case_d2():
    return on_gpu() + torch.ones(8, 3).split(4)[0]  # raises


def case_d4():
    return on_gpu() + torch.kron(torch.ones(2, 3), torch.ones(2, 1))  # raises


def case_d5():
    return on_gpu() + torch.block_diag(torch.ones(2, 1), torch.ones(2, 2))  # raises


def case_d7():
    return on_gpu() + torch.ones(4, 3).masked_fill(torch.ones(4, 3) > 0, 1.)  # raises


def case_d8():
    return on_gpu() + torch.ones(4, 3).scatter_add(0, torch.zeros(1, 3).long(), torch.ones(1, 3))  # raises


def case_d9():
    return on_gpu() + torch.histc(torch.ones(4), bins=3)  # raises


def case_e1():
    return on_gpu() + torch.bincount(torch.zeros(3).long(), minlength=3)  # raises


def case_e2():
    return on_gpu() + torch.ones(4, 3).nanmean(0)  # raises


def case_e3():
    return on_gpu() + torch.nn.utils.rnn.pad_sequence([torch.ones(3)] * 4, batch_first=True)  # raises


def case_e8():
    return on_gpu() + torch.fft.rfft(torch.ones(4, 4)).real  # raises


def case_f1():
    return on_gpu() + torch.ones(4, 3).renorm(2, 0, 1)  # raises


def case_f3():
    return on_gpu() + torch.combinations(torch.ones(3), 3)  # raises


def case_f4():
    return on_gpu() + torch.ones(4, 3).tile(1, 1).roll(1, 0).flip(0).rot90(2)  # raises


def case_f5():
    return on_gpu() + torch.cdist(torch.ones(4, 2), torch.ones(3, 2))  # raises


def case_f7():
    return on_gpu() + torch.lerp(torch.ones(3), torch.ones(3), 0.5)  # raises


def case_f8():
    return on_gpu() + torch.take_along_dim(torch.ones(4, 3), torch.zeros(4, 3).long(), 0)  # raises


def case_f9():
    return on_gpu() + torch.ones(4, 3).index_select(0, torch.arange(4))  # raises


def case_h1():
    return on_gpu() + torch.atleast_2d(torch.ones(3))  # raises


def case_h3():
    return on_gpu() + torch.vander(torch.ones(4), 3)  # raises


def case_h4():
    return on_gpu() + F.pad(torch.ones(4, 2), (0, 1))  # raises


def case_h5():
    return on_gpu() + torch.diff(torch.ones(4))  # raises


def case_h6():
    return on_gpu() + torch.where(torch.ones(4, 3) > 0, torch.ones(4, 3), torch.zeros(4, 3))  # raises


def case_h8():
    return on_gpu() + torch.hann_window(3)  # raises


def case_h9():
    return on_gpu() + torch.logspace(0, 1, 3)  # raises


def case_i1():
    return on_gpu() + torch.polar(torch.ones(3), torch.ones(3)).abs()  # raises


def case_i2():
    return on_gpu() + torch.complex(torch.ones(3), torch.ones(3)).real  # raises


def case_i3():
    return on_gpu() + torch.view_as_real(torch.complex(torch.ones(3), torch.ones(3)))[..., 0]  # raises


def case_i4():
    return on_gpu() + torch.from_numpy(np.ones((4, 3)))  # raises


def case_i5():
    return on_gpu() + torch.empty(4, 3).uniform_(0, 1)  # raises


def case_i6():
    return on_gpu() + torch.nn.init.normal_(torch.empty(4, 3))  # raises


def case_i8():
    return on_gpu() + sum([torch.ones(4, 3), torch.ones(4, 3)])  # raises
