import torch
import torch.nn as nn
import losses as L

LOGITS, Y = torch.randn(4, 3), torch.tensor([0, 1, 2, 1])


def drive_FocalLoss():
    L.FocalLoss()(LOGITS.cuda(), Y.cuda())
    L.FocalLoss(alpha=[.2, .3, .5]).cuda()(LOGITS.cuda(), Y.cuda())


def drive_ClassBalanced():
    L.ClassBalanced({0: 10, 1: 5, 2: 1}).cuda()(LOGITS.cuda(), Y.cuda())


def drive_lovasz_grad():
    L.lovasz_grad(torch.tensor([1., 0, 1]).cuda())


def drive_dice_loss():
    p, t = torch.rand(2, 3, 4, 4).cuda(), torch.randint(0, 2, (2, 3, 4, 4)).cuda()
    L.dice_loss(p, t, classes=[0, 2], ignore=-1)


def drive_SSIM():
    L.SSIM()(torch.rand(1, 1, 8, 8).cuda(), torch.rand(1, 1, 8, 8).cuda())


def drive_MultiTaskLoss():
    m = L.MultiTaskLoss({"cls": nn.CrossEntropyLoss(), "reg": nn.MSELoss()}, weights=[1., .5]).cuda()
    m({"cls": LOGITS.cuda(), "reg": LOGITS.cuda()}, {"cls": Y.cuda(), "reg": torch.zeros(4, 3).cuda()})
    m({}, {})
