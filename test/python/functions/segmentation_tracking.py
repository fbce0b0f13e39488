"""Segmentation and tracking: data, losses, windowed inference, trackers."""
import math
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

LOSSES = {}

def register_loss(name):
    def wrap(cls):
        LOSSES[name] = cls
        return cls
    return wrap

@dataclass
class SegConfig:
    classes: int = 4
    width: int = 6
    crop: int = 8
    overlap: float = 0.5
    ignore: int = 255
    device: str = "cuda:0"
    loss: str = "ce"
    loss_args: dict = field(default_factory=dict)

def apply_to(sample, fn):
    if torch.is_tensor(sample):
        return fn(sample)
    if isinstance(sample, dict):
        return {key: apply_to(value, fn) for key, value in sample.items()}
    if isinstance(sample, list):
        return [apply_to(value, fn) for value in sample]
    return sample

class ShapesDataset(Dataset):
    def __init__(self, length=4, size=12, classes=4, transform=None):
        self.length, self.size, self.classes, self.transform = length, size, classes, transform

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        rng = np.random.RandomState(index)
        image = rng.rand(3, self.size, self.size).astype(np.float32)
        mask = rng.randint(0, self.classes, (self.size, self.size))
        boxes = rng.rand(1 + index % 3, 4).astype(np.float32) * self.size
        sample = {"image": torch.from_numpy(image), "mask": torch.from_numpy(mask), "boxes": torch.from_numpy(boxes),
                  "meta": {"index": index, "scale": (1.0, 1.0)}}
        return self.transform(sample) if self.transform else sample

class Normalize:
    def __init__(self, mean, std, device="cpu"):
        self.mean = torch.tensor(mean, device=device).view(-1, 1, 1)
        self.std = torch.tensor(std, device=device).view(-1, 1, 1)

    def __call__(self, sample):
        sample["image"] = (sample["image"] - self.mean) / self.std  # raises
        return sample

def collate(samples):
    batch = {key: torch.stack([each[key] for each in samples]) for key in ("image", "mask")}
    batch["boxes"] = [each["boxes"] for each in samples]
    batch["meta"] = [each["meta"] for each in samples]
    return batch

class Prefetcher:
    """Moves what it was told to move."""

    def __init__(self, loader, device, keys=None):
        self.loader, self.device, self.keys = loader, device, keys

    def __iter__(self):
        for batch in self.loader:
            for key in self.keys or batch:
                batch[key] = apply_to(batch[key], lambda t: t.to(self.device, non_blocking=True))
            yield batch

class TinySeg(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.stem = nn.Conv2d(3, cfg.width, 3, padding=1)
        self.norm = nn.BatchNorm2d(cfg.width)
        self.head = nn.Conv2d(cfg.width, cfg.classes, 1)

    def forward(self, image):
        return self.head(F.relu(self.norm(self.stem(image))))

@register_loss("ce")
class WeightedCE(nn.Module):
    def __init__(self, cfg, weight=None):
        super().__init__()
        self.ignore = cfg.ignore
        self.register_buffer("weight", None if weight is None else torch.as_tensor(weight))

    def forward(self, logits, target):
        return F.cross_entropy(logits, target, weight=self.weight, ignore_index=self.ignore)  # raises

@register_loss("dice")
class DiceLoss(nn.Module):
    def __init__(self, cfg, smooth=1.0):
        super().__init__()
        self.classes = cfg.classes
        self.smooth = torch.tensor(smooth)

    def forward(self, logits, target):
        probs = logits.softmax(1)
        onehot = F.one_hot(target, self.classes).permute(0, 3, 1, 2).to(probs)
        inter = (probs * onehot).sum((0, 2, 3))
        return 1 - ((2 * inter + self.smooth) / (probs.sum((0, 2, 3)) + onehot.sum((0, 2, 3)) + self.smooth)).mean()

@register_loss("balanced")
class EffectiveNumberLoss(nn.Module):
    """Counts classes as they are seen."""

    def __init__(self, cfg, beta=0.99, counts_device=None):
        super().__init__()
        self.beta = beta
        self.counts = torch.zeros(cfg.classes, device=counts_device)

    def forward(self, logits, target):
        seen = torch.bincount(target.flatten(), minlength=logits.shape[1]).float()
        self.counts += seen  # raises
        weight = (1 - self.beta) / (1 - self.beta ** self.counts.clamp(min=1))
        return F.cross_entropy(logits, target, weight=weight.to(logits.device))

def build_loss(cfg):
    return LOSSES[cfg.loss](cfg, **cfg.loss_args)

class SegTrainer:
    def __init__(self, cfg, model=None, move_loss=True):
        self.cfg = cfg
        self.model = (model or TinySeg(cfg)).to(cfg.device)
        self.criterion = build_loss(cfg)
        if move_loss:
            self.criterion.to(cfg.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.history = defaultdict(list)

    def loader(self, transform=None):
        return DataLoader(ShapesDataset(transform=transform, classes=self.cfg.classes), batch_size=2, collate_fn=collate)

    def step(self, batch):
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(batch["image"]), batch["mask"])
        loss.backward()
        self.optimizer.step()
        self.history["loss"].append(loss.detach())
        return loss

    def fit(self, batches):
        for batch in batches:
            self.step(batch)
        return self

    def summary(self, how="stack"):
        if how == "stack":
            return torch.stack(self.history["loss"]).mean().cpu().numpy()
        return {key: np.mean(values) for key, values in self.history.items()}  # raises

class SlidingWindow:
    def __init__(self, cfg, stitch=None):
        self.crop, self.stride = cfg.crop, max(1, int(cfg.crop * (1 - cfg.overlap)))
        self.stitch = stitch
        ramp = torch.hann_window(self.crop, periodic=False) + 0.1
        self.importance = torch.outer(ramp, ramp)

    def corners(self, height, width):
        rows = range(0, max(height - self.crop, 0) + 1, self.stride)
        cols = range(0, max(width - self.crop, 0) + 1, self.stride)
        return [(r, c) for r in rows for c in cols]

    def blend(self, score, row, col, canvas, norm):
        window = self.importance.to(canvas.device)
        view = canvas[..., row:row + self.crop, col:col + self.crop]
        view += score * window  # raises
        norm[row:row + self.crop, col:col + self.crop] += window

    @torch.no_grad()
    def __call__(self, model, image):
        height, width = image.shape[-2:]
        canvas = norm = None
        for row, col in self.corners(height, width):
            score = model(image[..., row:row + self.crop, col:col + self.crop])
            if canvas is None:
                where = self.stitch or score.device
                canvas = torch.zeros(*score.shape[:2], height, width, device=where)
                norm = torch.zeros(height, width, device=where)
            self.blend(score, row, col, canvas, norm)
        return canvas / norm.clamp(min=1e-6)

class OffloadedWindow(SlidingWindow):
    def blend(self, score, row, col, canvas, norm):
        super().blend(score.to(canvas.device), row, col, canvas, norm)

class ConfusionMeter:
    def __init__(self, classes, ignore=255, device=None):
        self.classes, self.ignore = classes, ignore
        self.matrix = torch.zeros(classes, classes, dtype=torch.long, device=device)

    def update(self, logits, target):
        keep = target != self.ignore
        code = target[keep] * self.classes + logits.argmax(1)[keep]
        self.matrix = self.matrix.to(code.device) + torch.bincount(code, minlength=self.classes ** 2).view_as(self.matrix)

    def reduce(self, others):
        return sum((other.matrix for other in others), self.matrix)  # raises

    def iou(self):
        inter = self.matrix.diag().float()
        return inter / (self.matrix.sum(0) + self.matrix.sum(1) - inter).clamp(min=1)

def box_iou(first, second):
    low = torch.max(first[:, None, :2], second[None, :, :2])  # raises
    high = torch.min(first[:, None, 2:], second[None, :, 2:])
    inter = (high - low).clamp(min=0).prod(-1)
    area = lambda b: (b[:, 2:] - b[:, :2]).prod(-1)
    return inter / (area(first)[:, None] + area(second)[None] - inter + 1e-6)

def greedy_match(iou, threshold):
    pairs, table = [], iou.detach().cpu().numpy().copy()
    while table.size and table.max() > threshold:
        row, col = np.unravel_index(table.argmax(), table.shape)
        pairs.append((int(row), int(col)))
        table[row, :] = table[:, col] = -1
    return pairs

class Track:
    def __init__(self, ident, box, feature):
        self.ident, self.box, self.feature, self.misses = ident, box, feature, 0

    def update(self, box, feature, momentum=0.8):
        self.box, self.misses = box, 0
        self.feature = momentum * self.feature + (1 - momentum) * feature

class BaseTracker:
    def __init__(self, threshold=0.3, patience=2):
        self.threshold, self.patience = threshold, patience
        self.tracks, self.next_id = OrderedDict(), 0

    def keep(self, box):
        return box

    def spawn(self, box, feature):
        self.tracks[self.next_id] = Track(self.next_id, self.keep(box), feature)
        self.next_id += 1

    def step(self, boxes, features):
        left = set(range(len(boxes)))
        if self.tracks:
            idents = list(self.tracks)
            known = torch.stack([self.tracks[i].box for i in idents])
            for row, col in greedy_match(self.affinity(known, boxes, idents, features), self.threshold):
                self.tracks[idents[row]].update(self.keep(boxes[col]), features[col])
                left.discard(col)
        for col in sorted(left):
            self.spawn(boxes[col], features[col])
        return self

    def affinity(self, known, boxes, idents, features):
        return box_iou(known, boxes)

class HostTracker(BaseTracker):
    def keep(self, box):
        return box.detach().cpu()

class HostTrackerPaired(HostTracker):
    def affinity(self, known, boxes, idents, features):
        return super().affinity(known.to(boxes), boxes, idents, features)

class AppearanceTracker(BaseTracker):
    def __init__(self, gallery_device, **kwargs):
        super().__init__(**kwargs)
        self.gallery = torch.zeros(16, 5, device=gallery_device)

    def spawn(self, box, feature):
        self.gallery[self.next_id] = F.normalize(feature, dim=0)
        super().spawn(box, feature)

    def affinity(self, known, boxes, idents, features):
        rows = self.gallery[torch.tensor(idents)]
        similarity = rows @ F.normalize(features, dim=1).t()  # raises
        return similarity.clamp(min=0) * box_iou(known, boxes)

def frames(count=3, device="cuda:0"):
    base = torch.tensor([[0.0, 0.0, 6.0, 6.0], [8.0, 8.0, 14.0, 15.0]], device=device)
    for index in range(count):
        yield base + 0.2 * index, torch.ones(2, 5, device=device) * (index + 1)

def paste_masks(masks, boxes, size, threshold):
    grid = (torch.arange(size, device=boxes.device) + 0.5)[None]
    norm = lambda low, high: (grid - low[:, None]) / (high - low)[:, None] * 2 - 1
    y, x = norm(boxes[:, 1], boxes[:, 3]), norm(boxes[:, 0], boxes[:, 2])
    where = torch.stack([x[:, None].expand(-1, size, -1), y[:, :, None].expand(-1, -1, size)], dim=3)
    return F.grid_sample(masks, where, align_corners=False)[:, 0] > threshold  # raises

def panoptic_merge(scores, masks, order=None):
    order = scores.argsort(descending=True) if order is None else order
    canvas = torch.zeros(masks.shape[-2:], dtype=torch.long)
    for rank, index in enumerate(order.tolist(), 1):
        free = masks[index] & (canvas == 0).to(masks.device)
        canvas.masked_fill_(free, rank)  # raises
    return canvas

def case_train_plain():
    trainer = SegTrainer(SegConfig())
    trainer.fit(Prefetcher(trainer.loader(Normalize([0.5] * 3, [0.2] * 3)), "cuda:0"))
    assert math.isfinite(float(trainer.summary()))

def case_mask_left_out():
    trainer = SegTrainer(SegConfig(loss="dice"))
    batch = next(iter(Prefetcher(trainer.loader(), "cuda:0", keys=("image", "mask"))))
    assert batch["boxes"][0].device.type == "cpu"
    trainer.step(batch)

def case_weight_moved():
    SegTrainer(SegConfig(loss_args={"weight": [1.0, 2.0, 1.0, 0.5]})).fit(Prefetcher(SegTrainer(SegConfig()).loader(), 0))

def case_weight_not_moved():
    trainer = SegTrainer(SegConfig(loss_args={"weight": [1.0, 2.0, 1.0, 0.5]}), move_loss=False)
    trainer.fit(Prefetcher(trainer.loader(), trainer.cfg.device))

def case_normalize_after_prefetch():
    trainer = SegTrainer(SegConfig())
    post = Normalize([0.5] * 3, [0.2] * 3)
    for batch in Prefetcher(trainer.loader(), "cuda:0"):
        trainer.step(post(batch))

def case_normalize_on_card():
    trainer = SegTrainer(SegConfig())
    post = Normalize([0.5] * 3, [0.2] * 3, trainer.cfg.device)
    trainer.fit(post(batch) for batch in Prefetcher(trainer.loader(), "cuda:0"))

def case_balanced_attribute():
    trainer = SegTrainer(SegConfig(loss="balanced"))
    trainer.fit(Prefetcher(trainer.loader(), "cuda:0"))

def case_balanced_placed():
    trainer = SegTrainer(SegConfig(loss="balanced", loss_args={"counts_device": "cuda:2"}, device="cuda:2"))
    trainer.fit(Prefetcher(trainer.loader(), "cuda:2"))

def case_summary_means():
    trainer = SegTrainer(SegConfig(device="cuda:1"))
    trainer.fit(Prefetcher(trainer.loader(), "cuda:1")).summary("means")

def case_window_host_canvas():
    cfg = SegConfig()
    SlidingWindow(cfg, stitch="cpu")(TinySeg(cfg).cuda().eval(), torch.rand(1, 3, 16, 12).cuda())

def case_window_offloaded():
    cfg = SegConfig()
    OffloadedWindow(cfg, stitch="cpu")(TinySeg(cfg).cuda().eval(), torch.rand(1, 3, 16, 12).cuda()).numpy()

def case_meter_follows():
    meter = ConfusionMeter(4)
    for _ in range(2):
        meter.update(torch.rand(2, 4, 5, 5).cuda(), torch.randint(0, 4, (2, 5, 5)).cuda())
    meter.iou().cpu().numpy()

def case_meter_reduce():
    meters = [ConfusionMeter(3) for _ in range(2)]
    for rank, meter in enumerate(meters):
        meter.update(torch.rand(1, 3, 4, 4, device=rank), torch.randint(0, 3, (1, 4, 4), device=rank))
    meters[0].reduce(meters[1:])

def case_tracker_host():
    tracker = HostTracker()
    for boxes, features in frames():
        tracker.step(boxes, features)

def case_tracker_host_paired():
    tracker = HostTrackerPaired()
    for boxes, features in frames(4, "cuda:3"):
        tracker.step(boxes, features)

def case_gallery():
    tracker = AppearanceTracker(gallery_device="cuda:0")
    for boxes, features in frames():
        tracker.step(boxes, features)

def case_gallery_default():
    tracker = AppearanceTracker(gallery_device=None)
    for boxes, features in frames():
        tracker.step(boxes, features)

def case_paste_host_boxes():
    paste_masks(torch.rand(2, 1, 7, 7).cuda(), next(frames(device="cpu"))[0], 16, 0.5)

def case_merge_on_card():
    panoptic_merge(torch.rand(3).cuda(), torch.rand(3, 6, 6).cuda() > 0.5)

def case_merge_on_host():
    scores = torch.rand(3).cuda()
    panoptic_merge(scores.cpu(), torch.rand(3, 6, 6) > 0.5, scores.argsort())
