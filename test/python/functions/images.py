import math
from collections import OrderedDict, namedtuple
from typing import List, Optional, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

Detection = namedtuple("Detection", "boxes scores labels")

IMAGENET_MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
IMAGENET_STD = [0.229, 0.224, 0.225]


def conv_bn_relu(cin, cout, stride=1):
    return nn.Sequential(OrderedDict([
        ("conv", nn.Conv2d(cin, cout, 3, stride, 1, bias=False)),
        ("bn", nn.BatchNorm2d(cout)),
        ("relu", nn.ReLU(inplace=True)),
    ]))


class TinyBackbone(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.stem = conv_bn_relu(3, width, 2)
        self.stages = nn.ModuleList([conv_bn_relu(width * 2 ** i, width * 2 ** (i + 1), 2) for i in range(2)])
        self.out_channels = width * 4

    def forward(self, x):
        x = self.stem(x)
        feats = []
        for stage in self.stages:
            x = stage(x)
            feats.append(x)
        return feats


class AnchorGenerator(nn.Module):
    def __init__(self, sizes=(8, 16), ratios=(0.5, 1.0), strides=(4, 8)):
        super().__init__()
        self.strides = strides
        self.cells = [self._cell(s, ratios) for s in sizes]

    @staticmethod
    def _cell(size, ratios):
        out = []
        for r in ratios:
            w = size * math.sqrt(1.0 / r)
            h = w * r
            out.append([-w / 2, -h / 2, w / 2, h / 2])
        return torch.tensor(out)

    def forward(self, feats: List[torch.Tensor]):
        anchors = []
        for stride, cell, feat in zip(self.strides, self.cells, feats):
            h, w = feat.shape[-2:]
            sx = torch.arange(0, w * stride, stride, device=feat.device, dtype=torch.float32)
            sy = torch.arange(0, h * stride, stride, device=feat.device, dtype=torch.float32)
            yy, xx = torch.meshgrid(sy, sx, indexing="ij")
            shifts = torch.stack([xx.reshape(-1), yy.reshape(-1), xx.reshape(-1), yy.reshape(-1)], dim=1)
            anchors.append((shifts[:, None, :] + cell[None]).reshape(-1, 4))  # raises
        return torch.cat(anchors)


def case_anchor_generator_cells():
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    backbone = TinyBackbone().to(device).eval()
    rpn_anchors = AnchorGenerator().to(device)
    images = torch.randn(2, 3, 32, 32).to(device)
    with torch.no_grad():
        feats = backbone(images)
        return rpn_anchors(feats)


class SplitAnchors(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n
        for i in range(n):
            self.register_buffer("grid%d" % i, torch.stack(torch.meshgrid(torch.arange(4.), torch.arange(4.), indexing="xy")))

    def forward(self, offsets):
        return [off + getattr(self, "grid%d" % i) for i, off in enumerate(offsets)]


def case_grids_in_numbered_buffers():
    decode = SplitAnchors(3).cuda()
    offsets = [torch.rand(2, 4, 4, device="cuda") for _ in range(3)]
    return torch.stack(decode(offsets)).mean()


class CropDataset(Dataset):
    def __init__(self, n=6):
        self.images = (np.random.rand(n, 32, 32, 3) * 255).astype(np.uint8)
        self.labels = np.random.randint(0, 5, n)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, idx):
        img = torch.from_numpy(self.images[idx]).permute(2, 0, 1).float() / 255.0
        img = (img - IMAGENET_MEAN) / torch.tensor(IMAGENET_STD).view(3, 1, 1)
        return img, int(self.labels[idx])


class Classifier(nn.Module):
    def __init__(self, num_classes=5):
        super().__init__()
        self.backbone = TinyBackbone()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(self.backbone.out_channels, num_classes)

    def forward(self, x):
        return self.fc(self.pool(self.backbone(x)[-1]).flatten(1))


def case_train_and_validate_classifier():
    device = "cuda"
    model = Classifier()
    model.to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loader = DataLoader(CropDataset(), batch_size=3, shuffle=True)
    history = {"loss": [], "acc": []}
    for images, target in loader:
        images, target = images.to(device, non_blocking=True), target.to(device, non_blocking=True)
        out = model(images)
        loss = criterion(out, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history["loss"].append(loss.item())
    correct = 0
    all_preds = torch.zeros(0, dtype=torch.long)
    model.eval()
    with torch.no_grad():
        for images, target in DataLoader(CropDataset(), batch_size=2):
            pred = model(images.to(device)).argmax(1).cpu()
            correct += (pred == target).sum().item()
            all_preds = torch.cat((all_preds, pred))
    history["acc"].append(correct / len(all_preds))
    return history


def case_validate_without_moving_target():
    device = torch.device("cuda", 0)
    model = Classifier().to(device).eval()
    correct, total = 0, 0
    for batch in DataLoader(CropDataset(4), batch_size=2):
        images = batch[0].to(device)
        target = batch[1]
        with torch.no_grad():
            scores = model(images)
        _, predicted = scores.max(1)
        total += target.size(0)
        correct += predicted.eq(target).sum().item()  # raises
    return correct / total


def normalize_batch(batch):
    mean = batch.new_tensor([0.485, 0.456, 0.406]).view(-1, 1, 1)
    std = batch.new_tensor(IMAGENET_STD).view(-1, 1, 1)
    return (batch.div_(255.0) - mean) / std


def denormalize(img):
    std = torch.tensor(IMAGENET_STD).view(3, 1, 1)
    return img * std + IMAGENET_MEAN


def case_preview_denormalized_on_host():
    batch = torch.randint(0, 255, (2, 3, 16, 16)).float().cuda()
    x = normalize_batch(batch)
    grid = [denormalize(each.detach().cpu()).clamp(0, 1).numpy() for each in x]
    return np.stack(grid).shape


def perceptual_features(net, x):
    x = (x - IMAGENET_MEAN.to(x)) / torch.as_tensor(IMAGENET_STD, device=x.device)[:, None, None]
    return net(x)


def case_perceptual_loss_style_image():
    device = torch.device("cuda")
    vgg = TinyBackbone().to(device).requires_grad_(False)
    style = torch.rand(1, 3, 32, 32)
    transformer = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 3, padding=1)).to(device)

    def gram(y):
        b, c, h, w = y.shape
        f = y.view(b, c, h * w)
        return f.bmm(f.transpose(1, 2)) / (c * h * w)

    style_grams = [gram(f) for f in perceptual_features(vgg, style.repeat(2, 1, 1, 1).to(device))]
    x = torch.rand(2, 3, 32, 32)
    y = transformer(x.to(device))
    y = torch.sigmoid(y)
    content = perceptual_features(vgg, y)
    style_loss = sum(F.mse_loss(gram(f), g) for f, g in zip(content, style_grams))
    tv = (y[..., 1:] - y[..., :-1]).abs().mean() + (y - x).pow(2).mean()  # raises
    return style_loss + 1e-3 * tv


def box_iou(a, b):
    lt = torch.max(a[:, None, :2], b[:, :2])
    rb = torch.min(a[:, None, 2:], b[:, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[..., 0] * wh[..., 1]
    area = lambda t: (t[:, 2] - t[:, 0]) * (t[:, 3] - t[:, 1])
    return inter / (area(a)[:, None] + area(b) - inter)


def nms(boxes, scores, thr=0.5):
    order = scores.argsort(descending=True)
    keep = []
    while order.numel() > 0:
        i = order[0]
        keep.append(int(i))
        if order.numel() == 1:
            break
        iou = box_iou(boxes[i][None], boxes[order[1:]])[0]
        order = order[1:][iou <= thr]
    return torch.as_tensor(keep, dtype=torch.long)


def random_boxes(n, device):
    xy = torch.rand(n, 2, device=device) * 10
    return torch.cat([xy, xy + torch.rand(n, 2, device=device) * 5 + 1], dim=1)


def case_nms_keep_indexes_gpu_boxes():
    boxes = random_boxes(8, "cuda")
    scores = torch.rand(8, device="cuda")
    keep = nms(boxes, scores)
    det = Detection(boxes[keep], scores[keep], None)
    return det.boxes.shape[0] == det.scores.shape[0]


def case_nms_keep_class_scores_selected():
    boxes = random_boxes(8, "cuda")
    logits = torch.randn(8, 4).cuda()
    scores, labels = logits.softmax(-1).max(-1)
    keep = nms(boxes, scores)
    boxes = boxes[keep]
    return Detection(boxes, scores.index_select(0, keep), labels[keep])  # raises


class PatchEmbed(nn.Module):
    def __init__(self, img=16, patch=4, dim=12):
        super().__init__()
        self.proj = nn.Conv2d(3, dim, patch, patch)
        n = (img // patch) ** 2
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.zeros(1, n + 1, dim))
        self.mask_token = torch.zeros(1, 1, dim)
        nn.init.trunc_normal_(self.pos, std=0.02)

    def forward(self, x, bool_masked_pos: Optional[torch.Tensor] = None):
        x = self.proj(x).flatten(2).transpose(1, 2)
        b, n, _ = x.shape
        if bool_masked_pos is not None:
            token = self.mask_token.expand(b, n, -1)
            w = bool_masked_pos.unsqueeze(-1).type_as(token)
            x = x * (1 - w) + token * w  # raises
        x = torch.cat((self.cls.expand(b, -1, -1), x), dim=1)
        return x + self.pos


def case_masked_patches():
    embed = PatchEmbed().cuda()
    x = torch.rand(2, 3, 16, 16).cuda()
    plain = embed(x)
    mask = torch.rand(2, 16, device=x.device) > 0.6
    return embed(x, mask) - plain


def case_patches_without_mask():
    embed = PatchEmbed().to("cuda:2")
    return embed(torch.rand(2, 3, 16, 16, device="cuda:2")).sum().backward()


def random_erasing(images: torch.Tensor, p: float = 0.5) -> torch.Tensor:
    """Erases a square in some of the images."""
    b, c, h, w = images.shape
    chosen = torch.nonzero(torch.rand(b) < p + 1.0).flatten().tolist()
    for i in chosen:
        top, left = torch.randint(0, h // 2, (2,)).tolist()
        images[i, :, top:top + 4, left:left + 4] = torch.empty(c, 4, 4).normal_()
    return images


def mixup(images, targets, alpha=0.4, num_classes=5) -> Tuple[torch.Tensor, torch.Tensor]:
    lam = np.random.beta(alpha, alpha)
    perm = torch.randperm(images.size(0))
    onehot = F.one_hot(targets, num_classes).float()
    return lam * images + (1 - lam) * images[perm], lam * onehot + (1 - lam) * onehot[perm]


def case_augment_on_device():
    images = torch.rand(4, 3, 16, 16, device="cuda:1")
    targets = torch.arange(4, device="cuda:1")
    images = random_erasing(images)
    mixed, soft = mixup(images, targets)
    net = Classifier().to(mixed.device)
    return F.cross_entropy(net(mixed), soft).item()


def cutmix(images, targets):
    lam = torch.distributions.Beta(1.0, 1.0).sample((images.size(0), 1, 1, 1))
    rolled = images.roll(1, 0)
    return images * lam + rolled * (1 - lam), targets, targets.roll(1, 0)  # raises


def case_cutmix_on_device():
    images = torch.rand(4, 3, 16, 16, device="cuda:1")
    return cutmix(images, torch.arange(4, device="cuda:1"))
