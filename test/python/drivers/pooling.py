import torch
import pooling as P

EI = torch.tensor([[0, 1, 2, 3, 4], [1, 0, 3, 4, 2]])
BATCH = torch.tensor([0, 0, 1, 1, 1])


def drive_scatter_mean():
    P.scatter_mean(torch.rand(5, 2).cuda(), BATCH.cuda(), 2)


def drive_to_dense_adj():
    P.to_dense_adj(EI.cuda(), BATCH.cuda())


def drive_TopKPooling():
    P.TopKPooling(3).cuda()(torch.rand(5, 3).cuda(), EI.cuda(), BATCH.cuda())


def drive_GraphNorm():
    n = P.GraphNorm(3).cuda()
    n(torch.rand(5, 3, device="cuda"))
    n(torch.rand(5, 3, device="cuda"), BATCH.cuda())


def drive_PairNorm():
    n = P.PairNorm()
    n(torch.rand(5, 3).cuda())
    n(torch.rand(5, 3).cuda(), BATCH.cuda())


def drive_dropout_edge():
    e, idx = P.dropout_edge(EI.cuda(), .3, force_undirected=True)
    EI.cuda()[:, idx]
