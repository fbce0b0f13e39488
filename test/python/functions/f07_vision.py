import math
import random
from typing import List, NamedTuple, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


def _device():
    return torch.device("cuda:0") if torch.cuda.is_available() else torch.device("cpu")


def _gaussian_kernel1d(size: int, sigma: float) -> Tensor:
    x = torch.arange(size, dtype=torch.float32) - (size - 1) / 2
    k = torch.exp(-(x**2) / (2 * sigma**2))
    return k / k.sum()


def _gaussian_blur(img: Tensor, size: int = 3, sigma: float = 1.0) -> Tensor:
    k = _gaussian_kernel1d(size, sigma)
    kernel = torch.outer(k, k).expand(img.shape[1], 1, size, size).to(img.device, img.dtype)
    return F.conv2d(img, kernel, padding=size // 2, groups=img.shape[1])


def _sobel(img: Tensor) -> Tuple[Tensor, Tensor]:
    gx = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]], dtype=img.dtype)
    kx = gx.view(1, 1, 3, 3).repeat(img.size(1), 1, 1, 1)
    ky = kx.transpose(2, 3)
    dx = F.conv2d(img, kx, padding=1, groups=img.size(1))  # raises
    dy = F.conv2d(img, ky, padding=1, groups=img.size(1))
    return dx, dy


def gaussian_blur_of_a_batch():
    return _gaussian_blur(torch.rand(2, 3, 8, 8, device=_device()))


def sobel_of_a_batch():
    dx, dy = _sobel(torch.rand(2, 3, 8, 8, device=_device()))
    return torch.sqrt(dx**2 + dy**2)


def _box_iou(a: Tensor, b: Tensor) -> Tensor:
    area_a = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    area_b = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    lt = torch.max(a[:, None, :2], b[None, :, :2])  # raises
    rb = torch.min(a[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(2)
    return inter / (area_a[:, None] + area_b[None] - inter)


def _make_anchors(h, w, stride=8, size=16.0, device="cpu"):
    ys = torch.arange(h, device=device) * stride
    xs = torch.arange(w, device=device) * stride
    y, x = torch.meshgrid(ys, xs, indexing="ij")
    ctr = torch.stack([x, y, x, y], dim=-1).reshape(-1, 4).float()
    return ctr + torch.tensor([-size, -size, size, size], device=device) / 2


def match_anchors_to_targets():
    feat = torch.randn(1, 4, 3, 3, device=_device())
    targets = [{"boxes": torch.tensor([[0.0, 0.0, 16.0, 16.0]]), "labels": torch.tensor([1])}]
    anchors = _make_anchors(*feat.shape[-2:], device=feat.device)
    labels = torch.zeros(anchors.size(0), dtype=torch.long, device=feat.device)
    for t in targets:
        iou = _box_iou(anchors, t["boxes"])
        best, idx = iou.max(1)
        labels[best > 0.5] = t["labels"][idx[best > 0.5]]
    return labels


def _giou(a, b):
    inter_lt, inter_rb = torch.max(a[:, :2], b[:, :2]), torch.min(a[:, 2:], b[:, 2:])
    inter = (inter_rb - inter_lt).clamp(min=0).prod(1)
    area = lambda t: (t[:, 2] - t[:, 0]) * (t[:, 3] - t[:, 1])
    union = area(a) + area(b) - inter
    hull = (torch.max(a[:, 2:], b[:, 2:]) - torch.min(a[:, :2], b[:, :2])).prod(1)
    return inter / union - (hull - union) / hull


def detection_losses():
    dev = _device()
    targets = [
        {"boxes": torch.tensor([[0.0, 0.0, 8.0, 8.0]]), "labels": torch.tensor([1])},
        {"boxes": torch.tensor([[1.0, 1.0, 6.0, 9.0], [0.0, 2.0, 4.0, 4.0]]), "labels": torch.tensor([2, 0])},
    ]
    targets = [{k: v.to(dev) for k, v in t.items()} for t in targets]
    n = sum(len(t["boxes"]) for t in targets)
    logits = torch.randn(n, 3, device=dev, requires_grad=True)
    boxes = torch.rand(n, 2, device=dev)
    boxes = torch.cat([boxes, boxes + 3.0], 1).requires_grad_()
    target_boxes = torch.cat([t["boxes"] for t in targets])
    target_classes = torch.cat([t["labels"] for t in targets])
    num_boxes = torch.as_tensor([n], dtype=torch.float, device=dev).clamp(min=1)
    loss = (1 - _giou(boxes, target_boxes)).sum() / num_boxes + F.cross_entropy(logits, target_classes)
    loss.backward()


class Instances(NamedTuple):
    boxes: Tensor
    scores: Tensor


def _nms(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    order = scores.argsort(descending=True)
    keep: List[int] = []
    suppressed = torch.zeros(len(boxes), dtype=torch.bool, device=boxes.device)
    for i in order.tolist():
        if suppressed[i]:
            continue
        keep.append(i)
        wh = torch.min(boxes[:, 2:], boxes[i, 2:]) - torch.max(boxes[:, :2], boxes[i, :2])
        overlap = wh.clamp(min=0).prod(1)
        suppressed |= overlap > threshold
    return torch.tensor(keep)


def nms_and_filter():
    dev = _device()
    xy = torch.rand(6, 2, device=dev)
    det = Instances(torch.cat([xy, xy + 1], 1), torch.rand(6, device=dev))
    keep = _nms(det.boxes, det.scores, 0.5)
    det = Instances(det.boxes[keep], det.scores[keep])
    return torch.cat([det.boxes, det.scores[:, None]], 1).cpu().numpy()


def nms_with_class_offsets():
    dev = _device()
    xy = torch.rand(6, 2, device=dev)
    boxes, scores = torch.cat([xy, xy + 1], 1), torch.rand(6, device=dev)
    classes = torch.randint(0, 3, (6,), device=dev)
    keep = _nms(boxes + classes[:, None] * 4096.0, scores, 0.5)
    area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    return classes.gather(0, keep), area[keep]  # raises


def _warp(img, angle):
    theta = torch.tensor(
        [[math.cos(angle), -math.sin(angle), 0.0], [math.sin(angle), math.cos(angle), 0.0]]
    )
    grid = F.affine_grid(theta.expand(img.size(0), 2, 3), list(img.shape), align_corners=False)
    return F.grid_sample(img, grid, align_corners=False)  # raises


def rotate_images():
    imgs = torch.rand(2, 3, 8, 8).to(_device())
    return _warp(imgs, random.uniform(-0.5, 0.5))


class FlowWarp(nn.Module):
    backwarp_grid = {}

    def forward(self, img, flow):
        key = (str(flow.device), str(flow.size()))
        if key not in self.backwarp_grid:
            h, w = flow.shape[2:]
            hor = torch.linspace(-1.0, 1.0, w).view(1, 1, 1, w).expand(flow.size(0), -1, h, -1)
            ver = torch.linspace(-1.0, 1.0, h).view(1, 1, h, 1).expand(flow.size(0), -1, -1, w)
            self.backwarp_grid[key] = torch.cat([hor, ver], 1).to(flow.device)
        flow = torch.cat([flow[:, :1] / ((img.size(3) - 1) / 2), flow[:, 1:] / ((img.size(2) - 1) / 2)], 1)
        return F.grid_sample(img, (self.backwarp_grid[key] + flow).permute(0, 2, 3, 1), align_corners=True)


def optical_flow_warp():
    warp = FlowWarp()
    out = None
    for dev in ("cuda:0", "cuda:1"):
        img, flow = torch.rand(1, 3, 6, 6, device=dev), torch.randn(1, 2, 6, 6, device=dev)
        out = warp(img, flow)
    return out.device.index


def _adjust_brightness(img: Tensor, factor) -> Tensor:
    if not torch.is_tensor(factor):
        factor = torch.tensor(factor)
    if factor.dim() > 0:
        factor = factor.to(img.device).view(-1, 1, 1, 1)
    return (img + factor).clamp(0, 1)


def _adjust_gamma(img: Tensor, gamma, gain=1.0) -> Tensor:
    if not isinstance(gamma, Tensor):
        gamma = torch.tensor(gamma)
    if gamma.dim() > 0:
        gamma = gamma.to(img.device).view(-1, 1, 1, 1)
    if not isinstance(gain, Tensor):
        gain = torch.tensor([gain])
    return (gain * img**gamma).clamp(0.0, 1.0)  # raises


def adjust_brightness():
    img = torch.rand(2, 3, 4, 4, device=_device())
    return _adjust_brightness(img, 0.1), _adjust_brightness(img, torch.tensor([0.1, 0.2]))


def adjust_gamma():
    img = torch.rand(2, 3, 4, 4, device=_device())
    return _adjust_gamma(img, 0.5)


class Segmenter:
    def __init__(self, net, device, classes=4):
        self.net = net.to(device).eval()
        self.device = device
        self.classes = classes
        self.confusion = torch.zeros(classes, classes, dtype=torch.long)

    @torch.no_grad()
    def predict(self, img, label: Optional[Tensor] = None):
        pred = self.net(img.to(self.device)).argmax(1)
        if label is not None:
            self._add(pred.flatten().cpu(), label.flatten())
        return pred

    def _add(self, pred, true):
        valid = (true >= 0) & (true < self.classes)
        index = self.classes * true[valid] + pred[valid]
        self.confusion += torch.bincount(index, minlength=self.classes**2).view(self.classes, -1)

    def miou(self):
        h = self.confusion.float()
        return (h.diag() / (h.sum(0) + h.sum(1) - h.diag() + 1e-7)).mean().item()


def segmentation_iou():
    s = Segmenter(nn.Conv2d(3, 4, 1), _device())
    for _ in range(2):
        s.predict(torch.rand(2, 3, 4, 4), torch.randint(0, 4, (2, 4, 4)))
    return s.miou()


def class_activation_heatmap():
    device = _device()
    net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU()).to(device)
    head = nn.Linear(4, 2).to(device)
    feat = net(torch.rand(1, 3, 6, 6, device=device))
    cls = head(feat.mean((2, 3))).argmax(1).item()
    cam = (head.weight[cls].view(1, -1, 1, 1) * feat).sum(1)[0].detach()
    cam = (cam - cam.min()) / (cam.max() - cam.min() + 1e-6)
    return (cam * 255).byte().numpy()  # raises
