import torch
import gpkernels as K


def drive_PolynomialKernelGrad():
    k = K.PolynomialKernelGrad(2).cuda()
    x = torch.rand(3, 2, device="cuda")
    k(x, x, diag=True)
    k(x, x)


def drive_PeriodicKernel():
    k = K.PeriodicKernel(torch.tensor([2.])).cuda()
    x = torch.rand(4, 1).cuda()
    k(x, x[:2]).sum().backward()


def drive_SpectralMixtureKernel():
    k = K.SpectralMixtureKernel(2, 1).to("cuda")
    x, y = torch.rand(6, 1).cuda(), torch.rand(6).cuda()
    k(x, x)
    k.initialize_from_data(x, y)


def drive_root_by_lanczos():
    a = torch.randn(5, 5, device="cuda")
    a = a @ a.T
    K.root_by_lanczos(lambda v: a @ v, 5, 4, torch.randn(5, device="cuda"))


def drive_hadamard_noise():
    K.hadamard_noise(torch.rand(3, 1).cuda(), torch.tensor([[0], [2]]).cuda(), 3)


def drive_AdditiveStructure():
    m = K.AdditiveStructure(K.PeriodicKernel(), K.PeriodicKernel(3.), weights=[1, 2]).cuda()
    torch.linalg.cholesky(m(torch.rand(4, 1).cuda()) + 1e-2 * torch.eye(4).cuda())
