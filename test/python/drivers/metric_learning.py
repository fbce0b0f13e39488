import torch
import metric_learning as ml

DEV = torch.device("cuda")
CFG = ml.MetricConfig()


def _e(count=10):
    return torch.randn(count, CFG.dim, device=DEV, requires_grad=True)


def _y():
    return torch.tensor([0, 1, 2, 3, 0, 1, 2, 3, 0, 1], device=DEV)


def _loss(cls, *args, **options):
    cls(CFG, *args, **options).to(DEV)(_e(), _y()).backward()


def drive_distances():
    for cls in (ml.Distance, ml.CosineSimilarity):
        cls()(_e(), _e())


def drive_mahalanobis():
    ml.MahalanobisDistance(CFG.dim).to(DEV).fit(_e(20), _e(20))(_e())


def drive_mahalanobis_diagonal():
    ml.MahalanobisDistance(CFG.dim).to(DEV).fit_diagonal(_e(20), _e(20))(_e())


def drive_triplet():
    _loss(ml.TripletLoss, smooth=True)


def drive_triplet_hard():
    _loss(ml.TripletLoss, ml.HardMiner())


def drive_triplet_semihard():
    _loss(ml.TripletLoss, ml.SemiHardMiner(ml.Distance()))


def drive_triplet_weighted_miner():
    _loss(ml.TripletLoss, ml.DistanceWeightedMiner(CFG.dim))


def drive_triplet_random():
    _loss(ml.TripletLoss, ml.RandomMiner())


def drive_triplet_rarity():
    _loss(ml.WeightedTripletLoss, [3, 3, 2, 2, 1])


def drive_histogram():
    _loss(ml.HistogramLoss)


def drive_npair():
    ml.NPairLoss()(_e(), _e())


def drive_proxy():
    _loss(ml.ProxyLoss)


def drive_proxy_anchor():
    _loss(ml.ProxyAnchorLoss)


def drive_arcface():
    _loss(ml.ArcFaceLoss)


def drive_adacos():
    _loss(ml.AdaCosLoss)


def drive_margins():
    _loss(ml.ClassMarginLoss, [3, 3, 2, 2, 1])


def drive_softtriple():
    _loss(ml.SoftTripleLoss)


def drive_softtriple_merge():
    _loss(ml.SoftTripleLoss, merge=True)


def drive_center():
    loss = ml.CenterLoss(CFG).to(DEV)
    for _ in range(2):
        loss(_e(), _y()).backward()


def drive_center_table():
    loss = ml.CenterLoss(CFG).to(DEV)
    loss(_e(), _y())
    loss.table(CFG.num_classes)


def drive_sharded():
    ml.ShardedProxies(CFG, ["cuda:0", "cuda:1"])(_e(), _y()).backward()


def drive_sharded_local():
    ml.ShardedProxies(CFG, ["cuda:0", "cuda:1"], merged=False)(_e(), _y())


def drive_whitening():
    ml.Whitening(4).fit(_e(30))(_e())


def _evaluator():
    return ml.RetrievalEvaluator(torch.nn.Linear(CFG.dim, 6).to(DEV))


def drive_recall():
    _evaluator().recall([(torch.randn(10, CFG.dim), _y()), (_e(), _y().cpu())])


def drive_map():
    _evaluator().mean_average_precision(torch.rand(10, 10, device=DEV), _y(), _y())
