import torch
from memory_losses import *

torch.manual_seed(0)
D = "cuda:0"


def feats(n=6, d=8, device=D):
    return torch.randn(n, d, device=device, requires_grad=True)


def labels(n=6, c=4, device=D):
    return torch.randint(0, c, (n,), device=device)


def supervised(loss, c=4):
    loss.to(D)(feats(6, c), labels(c=c)).backward()


def ldam(epoch):
    loss = LDAMLoss([5, 3, 9, 2]).to(D)
    loss.set_epoch(epoch)
    supervised(loss)


def twice(loss):
    loss.to(D)
    loss(feats(), feats()).backward()
    loss(feats(), feats()).backward()


def uncertain():
    loss = UncertaintyWeighting(["depth", "normal"]).to(D)
    loss({"depth": feats().mean(), "normal": feats().pow(2).mean()}).backward()


def gathered(a, b):
    outputs = [torch.randn(3, 2, device=a), torch.randn(3, 2, device=b)]
    return gathered_loss(outputs, [torch.zeros_like(o) for o in outputs])


def store(**options):
    memory = InstanceMemory(20, 8, **options).to(D)
    memory.store(feats(), labels())


CALLS = {
    "focal": lambda: supervised(FocalLoss()),
    "focal_alpha": lambda: supervised(FocalLoss(alpha=[1.0, 2.0, 1.0, 0.5])),
    "ldam": lambda: ldam(0),
    "ldam_drw": lambda: ldam(2),
    "balanced": lambda: supervised(BalancedSoftmax([5, 3, 9, 2])),
    "moco": lambda: twice(MoCoLoss()),
    "moco_posterior": lambda: twice(PosteriorMoCoLoss()),
    "contrastive": lambda: supervised(ContrastiveLoss()),
    "contrastive_xbm": lambda: supervised(ContrastiveLoss(memory=CrossBatchMemory(12, 4))),
    "supcon": lambda: SupConLoss()(torch.randn(6, 2, 8, device=D), labels()),
    "ntxent": lambda: NTXentLoss()(feats(), feats()).backward(),
    "dino": lambda: DINOLoss(8).to(D)(feats(), feats(), 3),
    "koleo": lambda: KoLeo()(feats().detach()),
    "center": lambda: CenterLoss(4, 8).to(D)(feats(), labels()),
    "arcface": lambda: ArcFace(8, 4).to(D)(feats(), labels()),
    "memory": lambda: InstanceMemory(20, 8).to(D)(feats(), labels()),
    "memory_indexing": lambda: InstanceMemory(20, 8).to(D).by_indexing(feats(), labels()),
    "store": store,
    "store_offload": lambda: store(offload=True),
    "uncertainty": uncertain,
    "gathered": lambda: gathered(D, D),
    "gathered_two": lambda: gathered(D, "cuda:1"),
}
