"""Semantic segmentation: backbone, heads, losses, metrics, tiling, prototypes and a trainer."""
from collections import OrderedDict
from dataclasses import dataclass
from typing import Dict, Sequence

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

LOSSES: Dict[str, type] = {}
PALETTE = torch.tensor([[0, 0, 0], [128, 0, 0], [0, 128, 0], [128, 128, 0]], dtype=torch.uint8)


@dataclass
class SegConfig:
    classes: int = 4
    width: int = 6
    size: int = 12
    ignore: int = 255
    device: str = "cuda:0"


def registered(name):
    return lambda cls: LOSSES.setdefault(name, cls)


class ShapesDataset(Dataset):
    def __init__(self, config, count=4):
        self.config, self.count = config, count
        self.random = np.random.RandomState(0)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        mask = np.zeros((self.config.size,) * 2, dtype=np.int64)
        top, left = self.random.randint(0, self.config.size - 4, 2)
        mask[top:top + 4, left:left + 4] = 1 + index % (self.config.classes - 1)
        mask[0, 0] = self.config.ignore
        image = torch.from_numpy(np.stack([mask % 7] * 3)).float()
        return {"image": image, "mask": torch.from_numpy(mask), "id": f"shape{index}"}


class DevicePrefetcher:
    def __init__(self, loader, device, keys=("image", "mask")):
        self.loader, self.device, self.keys = loader, device, keys

    def _place(self, batch):
        return {key: value.to(self.device, non_blocking=True) if key in self.keys else value for key, value in batch.items()}

    def __iter__(self):
        ready = None
        for batch in self.loader:
            if ready is not None:
                yield ready
            ready = self._place(batch)
        if ready is not None:
            yield ready


class Normalizer(nn.Module):
    def __init__(self, mean=(1.0, 1.0, 1.0), std=(2.0, 2.0, 2.0)):
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1))
        self.std = torch.tensor(std).view(-1, 1, 1)

    def forward(self, image):
        return (image - self.mean) / self.std.to(image.device)

    def invert(self, image):
        return torch.addcmul(self.mean, image, self.std)  # raises


class Backbone(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.normalizer = Normalizer()
        self.stages = OrderedDict(stem=nn.Conv2d(3, width, 3, 2, 1), deep=nn.Conv2d(width, 2 * width, 3, 2, 1))
        for name, stage in self.stages.items():
            self.add_module(name, stage)

    def forward(self, image):
        features, current = OrderedDict(), self.normalizer(image)
        for name, stage in self.stages.items():
            features[name] = current = torch.relu(stage(current))
        return features


class PyramidHead(nn.Module):
    def __init__(self, width, classes, scales=(1, 2), lazy=False):
        super().__init__()
        self.width, self.scales, self.lazy = width, scales, lazy
        self.branches = nn.ModuleList() if lazy else nn.ModuleList(self.branch() for _ in scales)
        self.classifier = nn.Conv2d(width * (1 + len(scales)), classes, 1)

    def branch(self):
        return nn.Conv2d(self.width, self.width, 1)

    def pooled(self, feature):
        while len(self.branches) < len(self.scales):
            self.branches.append(self.branch())
        for scale, branch in zip(self.scales, self.branches):
            small = branch(F.adaptive_avg_pool2d(feature, scale))  # raises
            yield F.interpolate(small, feature.shape[-2:], mode="bilinear", align_corners=False)

    def forward(self, feature):
        return self.classifier(torch.cat([feature, *self.pooled(feature)], 1))


class Segmentor(nn.Module):
    def __init__(self, config, lazy=False):
        super().__init__()
        torch.manual_seed(0)
        self.config = config
        self.backbone = Backbone(config.width)
        self.head = PyramidHead(2 * config.width, config.classes, lazy=lazy)

    @property
    def device(self):
        return next(self.parameters()).device

    def forward(self, image):
        return F.interpolate(self.head(self.backbone(image)["deep"]), image.shape[-2:])

    @torch.no_grad()
    def predict(self, image):
        return self(image.to(self.device)).argmax(1)

    def coordinates(self, image, device=None):
        rows, columns = torch.meshgrid(*(torch.linspace(-1, 1, n, device=device) for n in image.shape[-2:]), indexing="ij")
        return torch.stack([columns, rows], -1).expand(len(image), -1, -1, -1)

    def warp(self, image, flow=0.1):
        return F.grid_sample(image, self.coordinates(image, image.device) + flow, align_corners=True)

    def warp_fixed(self, image):
        grid = self.coordinates(image)
        return F.grid_sample(image, grid.flip(-1), align_corners=True)  # raises


class LossBase(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config

    def valid(self, mask):
        return mask != self.config.ignore


@registered("dice")
class DiceLoss(LossBase):
    def hot(self, mask):
        safe = mask.masked_fill(~self.valid(mask), 0)
        return F.one_hot(safe, self.config.classes).permute(0, 3, 1, 2).float()

    def forward(self, logits, mask):
        shares, truth = logits.softmax(1), self.hot(mask)
        overlap = (shares * truth).sum((0, 2, 3))
        return 1 - (2 * overlap / (shares + truth).sum((0, 2, 3))).mean()


@registered("balanced")
class BalancedLoss(LossBase):
    def __init__(self, config):
        super().__init__(config)
        self.frequency = torch.ones(config.classes)

    def count(self, mask):
        counts = torch.bincount(mask[self.valid(mask)].cpu(), minlength=self.config.classes)
        self.frequency = 0.9 * self.frequency + 0.1 * counts / counts.sum()

    def forward(self, logits, mask):
        self.count(mask)
        return F.cross_entropy(logits, mask, 1 / self.frequency.to(logits), ignore_index=self.config.ignore)

    def focal(self, logits, mask):
        error = F.cross_entropy(logits, mask, ignore_index=self.config.ignore, reduction="none")
        alpha = self.frequency.reciprocal()[mask.clamp(max=self.config.classes - 1).cpu()]
        return torch.mul(alpha, error).mean()  # raises


@registered("ohem")
class HardPixelLoss(LossBase):
    def forward(self, logits, mask, share=0.25):
        error = F.cross_entropy(logits, mask, ignore_index=self.config.ignore, reduction="none").flatten()
        order = np.argsort(error.detach().cpu().numpy())[::-1].copy()
        return error[order[:int(len(order) * share)]].mean()


@registered("boundary")
class BoundaryLoss(LossBase):
    def distance(self, mask):
        edge = F.max_pool2d((mask > 0).float().unsqueeze(1), 3, 1, 1) - (mask > 0).float().unsqueeze(1)
        return np.minimum(edge.squeeze(1).numpy() + 0.5, 1.0)  # raises

    def forward(self, logits, mask, host=True):
        distance = torch.as_tensor(self.distance(mask.cpu() if host else mask), device=logits.device)
        return (logits.softmax(1)[:, 1:].sum(1) * distance).mean()


class ConfusionMatrix:
    def __init__(self, config, device="cpu"):
        self.config = config
        self.matrix = torch.zeros(config.classes, config.classes, dtype=torch.long, device=device)

    def update(self, predicted, mask):
        keep = mask != self.config.ignore
        flat = mask[keep] * self.config.classes + predicted[keep]
        counts = torch.bincount(flat, minlength=self.config.classes ** 2).view_as(self.matrix)
        self.matrix = self.matrix + counts.to(self.matrix.device)
        return self

    def add_pixels(self, predicted, mask):
        flat = (mask * self.config.classes + predicted).flatten()
        self.matrix.view(-1).scatter_add_(0, flat, torch.ones_like(flat))  # raises
        return self

    def mean_iou(self):
        hits = self.matrix.diagonal()
        return (hits / (self.matrix.sum(0) + self.matrix.sum(1) - hits).clamp(min=1)).mean().item()


class TiledInference:
    def __init__(self, model, window=12, stride=6, keep=None):
        self.model, self.window, self.stride, self.keep = model, window, stride, keep
        self.blend = torch.hann_window(window, periodic=False).add(0.1)

    def windows(self, shape):
        steps = [range(0, max(size - self.window, 0) + 1, self.stride) for size in shape]
        return [(slice(top, top + self.window), slice(left, left + self.window)) for top in steps[0] for left in steps[1]]

    @torch.no_grad()
    def __call__(self, image):
        place = self.keep or image.device
        total = torch.zeros(len(image), self.model.config.classes, *image.shape[-2:], device=place)
        weights = torch.zeros(image.shape[-2:], device=place)
        blend = torch.outer(self.blend, self.blend).to(place)
        for rows, columns in self.windows(image.shape[-2:]):
            logits = self.model(image[..., rows, columns].to(self.model.device))
            total[..., rows, columns] += logits.to(place) * blend
            weights[rows, columns] += blend
        return total / weights

    @torch.no_grad()
    def flipped(self, image):
        straight = self(image)
        mirrored = self.model(image[..., :self.window, :self.window].flip(-1)).flip(-1)
        return torch.maximum(straight[..., :self.window, :self.window], mirrored)  # raises


class PrototypeBank:
    def __init__(self, classes, rate=0.1):
        self.classes, self.rate = classes, rate
        self.means: Dict[int, torch.Tensor] = {}

    def update(self, feature, mask):
        small = F.interpolate(mask[:, None].float(), feature.shape[-2:])[:, 0].long()
        for label in small.unique().tolist():
            if label < self.classes:
                fresh = feature.detach().movedim(1, -1)[small == label].mean(0)
                self.means[label] = torch.lerp(self.means.get(label, fresh), fresh, self.rate)

    def logits(self, feature):
        table = torch.stack([self.means[label] for label in sorted(self.means)])
        return torch.einsum("bchw,kc->bkhw", feature, table)  # raises

    def state(self):
        return {label: mean.cpu() for label, mean in self.means.items()}

    def load(self, state: Dict, device=None):
        self.means = {label: mean.to(device) if device else mean for label, mean in state.items()}
        return self


def paint(labels):
    return PALETTE[labels]  # raises


def mix_classes(image, mask, donor: Sequence[torch.Tensor], chosen):
    """ClassMix: pastes the pixels of chosen classes."""
    picked = torch.isin(donor[1], chosen)  # raises
    return torch.where(picked.unsqueeze(1), donor[0], image), torch.where(picked, donor[1], mask)


CONFIG = SegConfig()


def _loader(**options):
    return DataLoader(ShapesDataset(CONFIG), batch_size=2, **options)


def _batch(device=CONFIG.device):
    return next(iter(DevicePrefetcher(_loader(), device)))


def _model(**options):
    return Segmentor(CONFIG, **options).to(CONFIG.device)


def _loss(name, **options):
    batch = _batch()
    return LOSSES[name](CONFIG).to(CONFIG.device)(_model()(batch["image"]), batch["mask"], **options).backward()


def case_losses_epoch():
    for name in ("dice", "balanced", "ohem", "boundary"):
        _loss(name)


def case_focal():
    batch = _batch()
    LOSSES["balanced"](CONFIG).focal(_model()(batch["image"]), batch["mask"])


def case_boundary_direct():
    _loss("boundary", host=False)


def case_invert_normalizer():
    model = _model()
    return model.backbone.normalizer.invert(_batch()["image"])


def case_lazy_head():
    return _model(lazy=True)(_batch()["image"])


def case_lazy_head_warmed_up():
    model = Segmentor(CONFIG, lazy=True)
    model.predict(_batch("cpu")["image"])
    return model.to(CONFIG.device)(_batch()["image"])


def case_warp():
    return _model().warp(_batch()["image"], 0.3)


def case_warp_fixed():
    return _model().warp_fixed(_batch()["image"])


def case_metric_on_host():
    batch = next(iter(_loader()))
    return ConfusionMatrix(CONFIG).update(_model().predict(batch["image"]).cpu(), batch["mask"]).mean_iou()


def case_metric_on_gpu():
    batch = _batch()
    return ConfusionMatrix(CONFIG).update(_model().predict(batch["image"]), batch["mask"]).mean_iou()


def case_metric_pixels():
    batch = _batch()
    return ConfusionMatrix(CONFIG).add_pixels(_model().predict(batch["image"]), batch["mask"] % 4)


def case_metric_pixels_of_host():
    return ConfusionMatrix(CONFIG).add_pixels(*(next(iter(_loader()))["mask"] % 4 for _ in range(2)))


def case_tiles_kept_on_host():
    return TiledInference(_model(), keep="cpu")(torch.rand(1, 3, 18, 18)).numpy()


def case_tiles_flipped_kept_on_host():
    return TiledInference(_model(), keep="cpu").flipped(torch.rand(1, 3, 18, 18, device="cuda"))


def _bank():
    batch, bank = _batch(), PrototypeBank(CONFIG.classes)
    feature = _model().backbone(batch["image"])["deep"]
    bank.update(feature, batch["mask"])
    return bank, feature


def case_prototypes():
    bank, feature = _bank()
    return PrototypeBank(4).load(bank.state(), feature.device).logits(feature)


def case_prototypes_restored():
    bank, feature = _bank()
    return PrototypeBank(4).load(bank.state()).logits(feature)


def case_paint():
    return paint(_model().predict(_batch()["image"]))


def case_class_mix():
    batch = _batch()
    return mix_classes(batch["image"], batch["mask"], (batch["image"].flip(0), batch["mask"].flip(0)), batch["mask"].unique()[:2])


def case_class_mix_drawn():
    batch = _batch()
    return mix_classes(batch["image"], batch["mask"], (batch["image"], batch["mask"]), torch.randperm(4)[:2])
