import torch

import makers


def drive_camera():
    return makers.Camera.of(torch.ones(3, device="cuda:0")).matrix


def drive_scaled_camera():
    return makers.Camera.of(torch.ones(3, device="cuda:0")).scaled(torch.ones(3, device="cuda:0")).intrinsics


def drive_lens():
    return makers.Lens.of(torch.ones(3, 2, device="cuda:0")).bend(torch.ones(2, 2, device="cuda:0"))


def drive_tagger():
    return makers.Tagger.of([2, 3]).to("cuda:1")(torch.ones(4, 2, device="cuda:1"))


def drive_masks():
    return makers.Masks.of([[1.0, 2.0]]).to("cuda:0").within(torch.ones(1, 2, device="cuda:0"))
