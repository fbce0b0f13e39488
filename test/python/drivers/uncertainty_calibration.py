import torch
import torch.nn as nn

import uncertainty_calibration as uc

DEV = torch.device("cuda", 0)
CFG = uc.CalibrationConfig()


def _net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 4))


def _loader(n=4):
    return [(torch.randn(10, 6), torch.arange(10) % 4) for _ in range(n)]


def _preds():
    return uc.collect(_net().to(DEV).eval(), _loader())


def _x():
    return torch.randn(5, 6, device=DEV)


def drive_temperature():
    train, test = _preds().split(0.5)
    return uc.TemperatureScaler(CFG).fit(train)(test.logits)


def drive_vector():
    preds = _preds()
    return uc.VectorScaler(CFG).fit(preds)(preds.logits)


def drive_dirichlet():
    return uc.DirichletScaler(CFG).fit(_preds())


def drive_prior():
    return uc.PriorCorrection(CFG, [4, 3, 2, 1]).fit(_preds())


def drive_histogram():
    preds = _preds()
    return uc.HistogramBinner(CFG).fit(preds)(preds.logits)


def drive_histogram_gap():
    preds = _preds()
    return uc.HistogramBinner(CFG).fit(preds).gap(preds.logits)


def drive_ece():
    metric = uc.CalibrationError(CFG)
    metric.update(_preds())
    metric.update(_preds().host())
    return metric.compute()


def drive_ece_merge():
    return uc.CalibrationError(CFG).merge(_preds())


def drive_least():
    preds = _preds()
    return uc.LeastAmbiguous(CFG).calibrate(preds).sets(preds.logits)


def drive_adaptive():
    preds = _preds()
    return uc.AdaptiveSets(CFG, randomized=True).calibrate(preds).sets(preds.logits)


def drive_adaptive_penalty():
    return uc.AdaptiveSets(CFG, penalty=0.1).calibrate(_preds())


def drive_conditional():
    preds = _preds()
    return uc.ClassConditional(CFG).calibrate(preds).sets(preds.logits)


def drive_mc():
    return uc.MonteCarloDropout(_net().to(DEV)).uncertainty(torch.randn(5, 6))


def _ensemble():
    return uc.SpreadEnsemble([_net() for _ in range(3)], ["cuda:0", "cuda:1", "cuda:2"])


def drive_ensemble():
    return _ensemble().probs(_x())


def drive_divergence():
    return _ensemble().divergence(_x())


def _swag():
    net = _net().to(DEV)
    swag = uc.SwagPosterior(net)
    for _ in range(3):
        with torch.no_grad():
            for p in net.parameters():
                p.add_(0.1 * torch.randn_like(p))
        swag.collect()
    return swag


def drive_swag():
    return _swag().draw(generator=torch.Generator().manual_seed(1))(_x())


def drive_swag_distance():
    return _swag().distance()


def _laplace():
    net = _net().to(DEV).eval()
    return uc.LastLayerLaplace(net[:3], net[3]).fit(_loader())


def drive_laplace():
    return _laplace().variance(_x())


def drive_thompson():
    return _laplace().thompson(_x())


def _mahalanobis():
    return uc.MahalanobisDetector(4).fit(torch.randn(20, 6, device=DEV), torch.arange(20, device=DEV) % 4)


def drive_mahalanobis():
    return _mahalanobis().score(_x())


def drive_flags():
    return _mahalanobis().flags(_x())
