import math
import numbers
from typing import Iterable, List, Mapping, Optional, Sequence, Union

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


def _reduce(loss, how):
    return {"none": lambda l: l, "mean": torch.mean, "sum": torch.sum}[how](loss)


# broken
class FocalLoss(nn.Module):
    """alpha: scalar or one weight a class"""

    def __init__(self, gamma: float = 2., alpha: Union[float, Sequence[float], None] = None, reduction="mean"):
        super(FocalLoss, self).__init__()
        self.gamma = gamma
        self.alpha = alpha
        if isinstance(alpha, numbers.Number):
            self.alpha = torch.Tensor([alpha, 1 - alpha])
        elif isinstance(alpha, (list, tuple)):
            self.alpha = torch.Tensor(alpha)
        self.reduction = reduction

    def forward(self, inp: Tensor, target: Tensor):
        logpt = inp.log_softmax(-1).gather(1, target[:, None]).squeeze(1)
        pt = logpt.detach().exp()
        if self.alpha is not None:
            at = self.alpha.gather(0, target.view(-1))  # raises
            logpt = logpt * at
        return _reduce(-(1 - pt) ** self.gamma * logpt, self.reduction)


# clean
class ClassBalanced(nn.Module):
    def __init__(self, counts: Mapping[int, int], beta: float = .99):
        super().__init__()
        n = torch.tensor([counts[k] for k in sorted(counts)], dtype=torch.float)
        w = (1 - beta) / (1 - torch.pow(beta, n))
        self.weights = w / w.sum() * len(w)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        onehot = F.one_hot(target, logits.size(1)).to(logits)
        w = self.weights.type_as(onehot).to(onehot.device).unsqueeze(0)
        w = (w.repeat(target.shape[0], 1) * onehot).sum(1, keepdim=True)
        return F.binary_cross_entropy_with_logits(logits, onehot, weight=w.expand_as(logits))


# broken
def lovasz_grad(gt_sorted: Tensor) -> Tensor:
    p = len(gt_sorted)
    gts = gt_sorted.sum()
    inter = gts - gt_sorted.float().cumsum(0)
    steps = torch.arange(1, p + 1, dtype=torch.float)
    union = gts + (steps - gt_sorted.float().cumsum(0))  # raises
    jac = 1. - inter / union
    if p > 1:
        jac[1:p] = jac[1:p] - jac[0:-1]
    return jac


# clean
def dice_loss(probs: Tensor, target: Tensor, classes: Optional[List[int]] = None, smooth: float = 1., ignore: Optional[int] = None) -> Tensor:
    if classes is not None:
        keep = torch.tensor(classes, dtype=torch.long)
        probs, target = probs[:, keep], target[:, keep]
    if ignore is not None:
        mask = target.ne(ignore)
        probs, target = probs * mask, target * mask
    dims = (0,) + tuple(range(2, probs.ndim))
    inter = torch.sum(probs * target, dims)
    score = (2. * inter + smooth) / (probs.sum(dims) + target.sum(dims) + smooth)
    present = (target.sum(dims) > 0).to(score.dtype)
    per_class = (1. - score) * present
    total = torch.zeros(())
    for l in per_class:
        total = total + l
    return total / max(1, probs.size(1))


# broken
class SSIM(nn.Module):
    def __init__(self, window: int = 5, sigma: float = 1.5, channels: int = 1):
        super().__init__()
        self.size, self.sigma, self.channels = window, sigma, channels

    def gaussian(self) -> Tensor:
        x = torch.arange(self.size).float() - self.size // 2
        if self.size % 2 == 0:
            x = x + .5
        g = torch.exp(-x.pow(2) / (2 * self.sigma ** 2))
        return g / g.sum()

    def window(self, like: Tensor) -> Tensor:
        g = self.gaussian()
        w = g.outer(g)[None, None].to(dtype=like.dtype)
        return w.expand(self.channels, 1, -1, -1).contiguous()

    def forward(self, a: Tensor, b: Tensor, c1=.01 ** 2, c2=.03 ** 2) -> Tensor:
        f = lambda t: F.conv2d(t, self.window(t), padding=self.size // 2, groups=self.channels)  # raises
        mu1, mu2 = f(a), f(b)
        s1, s2, s12 = f(a * a) - mu1 ** 2, f(b * b) - mu2 ** 2, f(a * b) - mu1 * mu2
        m = ((2 * mu1 * mu2 + c1) * (2 * s12 + c2)) / ((mu1 ** 2 + mu2 ** 2 + c1) * (s1 + s2 + c2))
        valid = torch.ones(m.shape[-2:], device=m.device)
        return 1 - (m * valid).sum() / valid.sum() / self.channels / a.size(0)


# clean
class MultiTaskLoss(nn.Module):
    """uncertainty weights for a caller's loss modules; tasks may be left out of a batch"""

    def __init__(self, losses: Mapping[str, nn.Module], weights: Optional[Iterable[float]] = None):
        super().__init__()
        self.losses = nn.ModuleDict(losses)
        self.log_vars = nn.ParameterDict({k: nn.Parameter(torch.zeros(1)) for k in losses})
        self.prior = dict(zip(losses, weights)) if weights is not None else {}

    def forward(self, out: Mapping[str, Tensor], target: Mapping[str, Tensor]):
        parts = {}
        for k, fn in self.losses.items():
            if k not in target:
                continue
            l = fn(out[k], target[k])
            parts[k] = l * torch.exp(-self.log_vars[k]) + self.log_vars[k] + math.log(2)
            if k in self.prior:
                parts[k] *= torch.tensor(self.prior[k])
        if not parts:
            return torch.zeros(1, requires_grad=True), {}
        total = torch.stack([p.squeeze() for p in parts.values()]).sum()
        return total, {k: v.item() for k, v in parts.items()}
