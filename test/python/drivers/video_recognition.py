import torch

import video_recognition as v

G = "cuda:0"


def clips(n=2, device=G):
    return torch.rand(n, 4, 3, 8, 8, device=device)


def model(**kw):
    return v.VideoRecognizer(v.RecognizerConfig(**kw)).to(G)


def video():
    return torch.rand(12, 3, 8, 8, device=G)


def labels(n=2):
    return torch.randint(0, 5, (n,), device=G)


def logits(n=2):
    return torch.randn(n, 5, device=G)


def drive_uniform():
    v.SAMPLERS.build("uniform", v.ClipConfig())(video())


def drive_dense():
    v.SAMPLERS.build("dense", v.ClipConfig(sampler="dense"))(video())


def drive_normalize():
    v.ClipNormalizer(v.ClipConfig())(clips())


def drive_undo():
    v.ClipNormalizer(v.ClipConfig()).undo(clips())


def drive_mean():
    model()(clips())


def drive_attention():
    model(consensus="attention")(clips())


def drive_triangle():
    model(consensus="triangle")(clips())


def drive_auxiliary():
    model(auxiliary_heads={"verb": 3})(clips())


def drive_predict():
    model().predict(video())


def drive_predict_host():
    model().predict(video().cpu())


def drive_views():
    v.MultiViewTester(model()).ranking(clips())


def drive_disagreement():
    v.MultiViewTester(model()).disagreement(clips())


def drive_mixup():
    v.ClipMixer(5).mixup(clips(), labels())


def drive_mixup_each():
    v.ClipMixer(5).mixup_each(clips(), labels())


def drive_cut():
    v.ClipMixer(5).cut(clips(), labels())


def drive_balanced():
    v.EffectiveNumberLoss([3, 4, 5, 6, 7]).to(G)(logits(), labels())


def drive_balanced_focal():
    v.EffectiveNumberLoss([3, 4, 5, 6, 7], focal=True).to(G)(logits(), labels())


def drive_hierarchy():
    v.HierarchyLoss([0, 0, 1, 1, 2]).to(G)(logits(), labels())


def drive_group_accuracy():
    v.HierarchyLoss([0, 0, 1, 1, 2]).to(G).group_accuracy(logits(), labels())


def meter():
    each = v.ConfusionMeter(5)
    for _ in range(2):
        each.update(logits(), labels(), logits().mean())
        each.remember(["a", "b"], logits())
    return each


def drive_meter():
    each = meter()
    each.recall()
    each.mean_loss
    each.video_predictions()


def drive_video_scores():
    meter().video_scores()


def bank():
    each = v.LongTermBank(8).to(G)
    each.store("a", 3, torch.rand(8, device=G))
    return each


def drive_bank():
    bank()(torch.rand(8, device=G), "a", 4)


def drive_novelty():
    bank().novelty(torch.rand(8, device=G), "a", 4)


def drive_warp():
    warp = v.FlowWarper()
    for _ in range(2):
        warp(torch.rand(1, 3, 8, 8, device=G), torch.rand(1, 2, 8, 8, device=G))


def drive_warp_two_devices():
    warp = v.FlowWarper()
    for device in (G, "cuda:1"):
        warp(torch.rand(1, 3, 8, 8, device=device), torch.rand(1, 2, 8, 8, device=device))
