import torch

import boxes as B


def xyxy(n):
    p = torch.rand(n, 2, device="cuda:0") * 10
    return torch.cat([p, p + 1 + torch.rand(n, 2, device="cuda:0") * 5], 1)


feat = lambda: [torch.zeros(1, 2, 3, 3, device="cuda:0")]
CALLS = {
    "iou": lambda: B.pairwise_iou(B.Boxes(xyxy(3)), B.Boxes(xyxy(2)).clip((8, 8))),
    "boxes_list": lambda: B.Boxes.cat([B.Boxes([[0, 0, 1, 1]]).to("cuda:0"), B.Boxes(xyxy(2))]).area(),
    "boxes_pad": lambda: B.Boxes(xyxy(2)).pad(torch.tensor(2.0)),
    "boxes_scale": lambda: B.Boxes(xyxy(2)).scale(2.0, 0.5),
    "deltas": lambda: B.Box2BoxTransform((1.0, 1.0, 2.0, 2.0)).get_deltas(xyxy(3), xyxy(3)),
    "apply_deltas": lambda: B.Box2BoxTransform((1.0, 1.0, 2.0, 2.0)).apply_deltas(torch.rand(3, 4, device="cuda:0"), xyxy(3)),
    "anchors": lambda: B.AnchorGenerator().to("cuda:0")(feat()),
    "anchors_buffer": lambda: B.BufferAnchorGenerator().to("cuda:0")(feat()),
    "matcher": lambda: B.Matcher([0.3, 0.7], [0, -1, 1])(torch.rand(3, 5, device="cuda:0")),
    "subsample": lambda: B.subsample_labels(torch.tensor([0, 1, 1, 0, 0], device="cuda:0"), 3, 0.5),
    "subsample_weighted": lambda: B.subsample_weighted(torch.ones(4, device="cuda:0"), torch.rand(4, device="cuda:0"), 2),
    "paste": lambda: B.paste_all(torch.rand(2, 3, 3, device="cuda:0"), torch.tensor([[0, 0, 2, 2], [1, 1, 4, 3]], device="cuda:0"), 5, 5),
    "paste_bg": lambda: B.paste_all(torch.rand(1, 3, 3, device="cuda:0"), torch.tensor([[0, 0, 2, 2]], device="cuda:0"), 5, 5, torch.rand(5, 5, device="cuda:0")),
    "heatmaps": lambda: B.heatmap_targets(torch.rand(2, 2, device="cuda:0") * 4, 5, 5),
    "keypoints": lambda: B.decode_keypoints(torch.rand(2, 4, 4, device="cuda:0")),
}
