from set_matching import *


def boxes(n=6):
    xy = torch.rand(n, 2, device="cuda") * 50
    return torch.cat([xy, xy + 5 + torch.rand(n, 2, device="cuda") * 20], dim=1)


def drive_iou():
    box_iou(boxes(), boxes())


def drive_encode():
    DeltaXYWHCoder().encode(boxes(), boxes())


def drive_decode():
    DeltaXYWHCoder().decode(boxes(), torch.randn(6, 4, device="cuda"))


def drive_head():
    head = AnchorHead().to("cuda")
    head([torch.rand(1, 4, 8, 8, device="cuda"), torch.rand(1, 4, 4, 4, device="cuda")])


def drive_max_iou():
    b = boxes()
    build_matcher(dict(type="max_iou"))(b[:3], b)


def drive_topk():
    build_matcher(dict(type="topk_center", topk=2))(boxes(3), boxes(8))


def criterion(name):
    crit = SetCriterion(3, dict(type="greedy")).to("cuda")
    targets = {"boxes": boxes(2), "labels": torch.tensor([0, 2], device="cuda")}
    crit(torch.randn(5, 4, device="cuda"), boxes(5), targets, losses=(name,))


def drive_labels():
    criterion("labels")


def drive_boxes():
    criterion("boxes")


def drive_card():
    criterion("cardinality")
