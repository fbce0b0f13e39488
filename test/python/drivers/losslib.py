import torch

import losslib as L

r = lambda *s: torch.randn(*s, device="cuda:0")
y = lambda n, k: torch.arange(n, device="cuda:0") % k

CALLS = {
    "smooth_l1": lambda: L.smooth_l1(r(3, 4), r(3, 4), weight=torch.ones(3, 1, device="cuda:0"), avg_factor=3.0),
    "balanced_l1": lambda: L.balanced_l1(r(3, 4), r(3, 4)),
    "arcface": lambda: L.ArcFace(4, 3).to("cuda:0")(r(5, 4), y(5, 3)),
    "cosface": lambda: L.CosFace(4, 3).to("cuda:0")(r(5, 4), y(5, 3)),
    "center": lambda: L.CenterLoss(3, 4).to("cuda:0")(r(5, 4), y(5, 3)),
    "triplet": lambda: L.TripletHard().to("cuda:0")(r(6, 4), y(6, 3)),
    "ntxent": lambda: L.NTXent(3).to("cuda:0")(r(3, 4), r(3, 4)),
    "barlow": lambda: L.BarlowTwins().to("cuda:0")(r(6, 4), r(6, 4)),
    "vicreg": lambda: L.VICReg().to("cuda:0")(r(6, 4), r(6, 4)),
    "lovasz": lambda: L.lovasz_hinge(r(2, 3), (r(2, 3) > 0).long()),
    "emd": lambda: L.emd_1d(r(2, 4).softmax(-1), r(2, 4).softmax(-1)),
    "mmd": lambda: L.mmd_rbf(r(4, 2), r(4, 2)),
    "sinkhorn": lambda: L.sinkhorn(r(3, 4).abs()),
    "bce": lambda: L.bce_pos_weight(r(3), torch.ones(3, device="cuda:0")),
}
