import torch
import metrics as M


def drive_Accuracy():
    m = M.Accuracy(2)
    m.update(torch.randn(4, 5), torch.tensor([0, 1, 2, 3]))
    m.cuda()
    m.update(torch.randn(4, 5).cuda(), torch.tensor([0, 1, 2, 3]).cuda())
    m.compute()
    m.reset()
    m.update(torch.randn(4, 5).cuda(), torch.tensor([0, 1, 2, 3]).cuda())


def drive_CalibrationError():
    m = M.CalibrationError().to("cuda")
    m.update(torch.randn(6, 3, device="cuda"), torch.randint(3, (6,), device="cuda"))
    m.compute()


def drive_retrieval_normalized_dcg():
    M.retrieval_normalized_dcg(torch.rand(5).cuda(), torch.tensor([0., 1, 0, 1, 1]).cuda())


def drive_roc_auc():
    p, t = torch.rand(8).cuda(), torch.tensor([0, 1] * 4).cuda()
    for th in (None, 5, [.2, .5], torch.tensor([.1, .9])):
        M.roc_auc(p, t, th)


def drive_MeanAveragePrecisionish():
    m = M.MeanAveragePrecisionish().cuda()
    b = torch.tensor([[0., 0, 2, 2], [1, 1, 3, 3]]).cuda()
    m.update([dict(boxes=b, scores=torch.rand(2).cuda())], [dict(boxes=b + .1)])
    m.compute()


def drive_RunningConfusion():
    m = M.RunningConfusion(3, ignore_index=-1).cuda()
    m.update(torch.tensor([0, 1, 2]).cuda(), torch.tensor([0, -1, 2]).cuda())
    m.compute()
