import torch
import l2_losses as m
D = "cuda:0"
X = lambda *s: torch.randn(*s, device=D, requires_grad=True)
Y = lambda n, k: (torch.arange(n, device=D) % k)
CALLS = {
    "get_all_pairs_indices": lambda: m.get_all_pairs_indices(Y(6, 3)),
    "contrastive_from_pairs": lambda: m.contrastive_from_pairs(X(6, 4), Y(6, 3)),
    "hardest_triplets": lambda: m.hardest_triplets(X(6, 4), Y(6, 3)),
    "hardest_triplets_like": lambda: m.hardest_triplets_like(X(6, 4), Y(6, 3)),
    "SupConLoss": lambda: (m.SupConLoss()(X(4, 2, 3)), m.SupConLoss()(X(4, 2, 3), Y(4, 2))),
    "ArcFace": lambda: m.ArcFace().to(D)(X(6, 4), Y(6, 3)),
    "CosFace": lambda: m.CosFace().to(D)(X(6, 4), Y(6, 3)),
    "PolyLoss": lambda: m.PolyLoss([0.2, 0.3, 0.5]).to(D)(X(6, 3), Y(6, 3)),
    "PolyLoss none": lambda: m.PolyLoss().to(D)(X(6, 3), Y(6, 3)),
    "BalancedLoss": lambda: m.BalancedLoss([0.2, 0.3, 0.5]).to(D)(X(6, 3), Y(6, 3)),
    "sigmoid_focal": lambda: m.sigmoid_focal(X(6, 3), torch.ones(6, 3, device=D)),
    "sigmoid_focal_scalar": lambda: m.sigmoid_focal_scalar(X(6, 3), torch.ones(6, 3, device=D)),
    "lovasz_hinge": lambda: m.lovasz_hinge(X(6), Y(6, 2)),
    "soft_dice": lambda: m.soft_dice(X(2, 3, 4, 4).softmax(1), torch.randint(0, 3, (2, 4, 4), device=D), 3),
    "ms_ssim_weights": lambda: m.ms_ssim_weights([torch.rand(2, device=D) for _ in range(3)]),
    "info_nce": lambda: m.info_nce(X(4, 3), X(4, 3)),
    "mmd_rbf": lambda: m.mmd_rbf(X(4, 3), X(4, 3)),
    "mmd_rbf_python_sum": lambda: m.mmd_rbf_python_sum(X(4, 3), X(4, 3)),
    "CalibrationError": lambda: m.CalibrationError().to(D).update(X(6, 3).softmax(-1), Y(6, 3)),
    "MeanMetric": lambda: (lambda k: (k.update(X(3).detach()), k.update(2.0), k.compute()))(m.MeanMetric().to(D)),
}
