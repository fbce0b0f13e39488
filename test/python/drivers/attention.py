import torch
import attention as A


def drive_SinusoidalPositionalEmbedding():
    m = A.SinusoidalPositionalEmbedding(8).cuda()
    m(torch.tensor([[1, 2, 3, 0]]).cuda())
    m(torch.ones(1, 12, dtype=torch.long).cuda())


def drive_RelativePositionBias():
    A.RelativePositionBias().to("cuda")(torch.randn(1, 2, 5, 5, device="cuda"))


def drive_CachedAttention():
    m = A.CachedAttention(4, 2, device="cuda")
    st = {}
    m(torch.randn(1, 3, 4).cuda(), pad=torch.zeros(1, 3).bool().cuda(), state=st)
    m(torch.randn(1, 1, 4).cuda(), pad=torch.zeros(1, 1).bool().cuda(), state=st)
    m(torch.randn(1, 1, 4).cuda(), state=st)


def drive_WindowAttention():
    m = A.WindowAttention(4, 2, 2).cuda()
    m(torch.randn(8, 4, 4).cuda(), mask=torch.zeros(4, 4, 4))


def drive_shifted_window_mask():
    A.shifted_window_mask(torch.randn(1, 4, 4, 2).cuda(), 2, 1)


def drive_TransformerLayer():
    m = A.TransformerLayer(4, A.WindowAttention, ws=2, heads=2).cuda().train()
    m(torch.randn(4, 4, 4).cuda())
