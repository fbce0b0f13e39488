import torch
import torch.nn as nn
import torch.nn.functional as F


class Detector(nn.Module):
    def __init__(self, classes=2, stride=4):
        super().__init__()
        self.stride, self.classes = stride, classes
        self.backbone = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1))
        self.cls = nn.Conv2d(8, classes, 1)
        self.reg = nn.Conv2d(8, 4, 1)
        self._grids = {}

    def centers(self, h, w, device):
        key = (h, w, device)
        if key not in self._grids:
            ys = (torch.arange(h) + 0.5) * self.stride
            xs = (torch.arange(w) + 0.5) * self.stride
            y, x = torch.meshgrid(ys, xs, indexing="ij")
            self._grids[key] = torch.stack([x, y], -1).view(-1, 2).to(device)
        return self._grids[key]

    def forward(self, images, targets=None):
        x = torch.stack(list(images))
        f = self.backbone(x)
        logits = self.cls(f).flatten(2).transpose(1, 2)
        deltas = F.softplus(self.reg(f)).flatten(2).transpose(1, 2) * self.stride
        c = self.centers(*f.shape[-2:], f.device)
        if self.training:
            return self.loss(c, logits, deltas, targets)
        boxes = torch.cat([c - deltas[..., :2], c + deltas[..., 2:]], -1)
        scores, labels = logits.softmax(-1)[..., 1:].max(-1)
        keep = scores.topk(3, dim=1).indices
        out = []
        for b, s, l, k in zip(boxes, scores, labels, keep):
            out.append({"boxes": b[k], "scores": s[k], "labels": l[k] + 1})
        return out

    def loss(self, c, logits, deltas, targets):
        cls_loss, reg_loss = logits.new_zeros(()), logits.new_zeros(())
        for lg, d, t in zip(logits, deltas, targets):
            inside = ((c[:, None] > t["boxes"][None, :, :2]) & (c[:, None] < t["boxes"][None, :, 2:])).all(-1)
            pos, idx = inside.float().max(1)
            target = torch.where(pos > 0, t["labels"][idx], torch.zeros_like(idx))
            cls_loss = cls_loss + F.cross_entropy(lg, target)
            if pos.any():
                m = pos > 0
                want = torch.cat([c[m] - t["boxes"][idx[m], :2], t["boxes"][idx[m], 2:] - c[m]], -1)
                reg_loss = reg_loss + F.l1_loss(d[m], want)
        return {"cls": cls_loss, "reg": reg_loss}
