import torch
from torch import nn
import sampling as S


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3)

    def forward(self, x, sigma):
        return self.l(x.float()).double() / (1 + sigma)


def drive_top_k_top_p():
    S.top_k_top_p(torch.randn(2, 9).cuda(), top_k=5, top_p=.8)


def drive_RepetitionPenalty():
    ids = torch.randint(0, 6, (2, 3)).cuda()
    S.RepetitionPenalty(1.2)(ids, torch.randn(2, 6).cuda())
    S.RepetitionPenalty(1.2, [0, 1])(ids, torch.randn(2, 6).cuda())


def drive_VPSchedule():
    s = S.VPSchedule().cuda()
    s(torch.randn(3, 2).cuda(), torch.tensor([0, 3, 9]))


def drive_edm_sampler():
    S.edm_sampler(Denoiser().cuda(), torch.randn(2, 3).cuda())
    S.edm_sampler(lambda x: x * .5, torch.randn(2, 3).cuda())


def drive_ReplayReservoir():
    r = S.ReplayReservoir(4)
    for _ in range(3):
        r.add(torch.randn(3, 2).cuda())
    nn.Linear(2, 1).cuda()(r.sample(2))


def drive_gumbel_subset():
    S.gumbel_subset(torch.randn(2, 5).cuda(), 2)
