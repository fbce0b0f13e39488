import math
from typing import Dict, List, Optional

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


class ContrastiveLoss(nn.Module):
    def __init__(self, temperature=0.07):
        super().__init__()
        self.temperature = temperature

    def forward(self, image_features, text_features):
        logits = image_features @ text_features.t() / self.temperature
        labels = torch.arange(logits.shape[0], device=logits.device, dtype=torch.long)
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2


class NTXent(nn.Module):
    def __init__(self, batch_size, temperature=0.5):
        super().__init__()
        self.batch_size = batch_size
        self.temperature = temperature
        self.mask = self._negatives_mask(batch_size)
        self.criterion = nn.CrossEntropyLoss(reduction="sum")

    def _negatives_mask(self, n):
        mask = torch.ones((2 * n, 2 * n), dtype=torch.bool)
        mask.fill_diagonal_(False)
        for i in range(n):
            mask[i, n + i] = False
            mask[n + i, i] = False
        return mask

    def forward(self, z_i, z_j):
        n = 2 * self.batch_size
        z = torch.cat((z_i, z_j), dim=0)
        sim = F.cosine_similarity(z.unsqueeze(1), z.unsqueeze(0), dim=2) / self.temperature
        sim_ij = torch.diag(sim, self.batch_size)
        sim_ji = torch.diag(sim, -self.batch_size)
        positives = torch.cat((sim_ij, sim_ji), dim=0).reshape(n, 1)
        negatives = sim[self.mask].reshape(n, -1)
        logits = torch.cat((positives, negatives), dim=1)
        labels = torch.zeros(n).long()
        return self.criterion(logits, labels) / n  # raises


def clip_loss():
    a = F.normalize(torch.randn(4, 8, device=device, requires_grad=True), dim=-1)
    b = F.normalize(torch.randn(4, 8, device=device), dim=-1)
    ContrastiveLoss()(a, b).backward()


def simclr_loss():
    criterion = NTXent(4).to(device)
    a = F.normalize(torch.randn(4, 8, device=device, requires_grad=True), dim=-1)
    b = F.normalize(torch.randn(4, 8, device=device), dim=-1)
    criterion(a, b).backward()


class FocalLoss(nn.Module):
    def __init__(self, alpha=None, gamma=2.0):
        super().__init__()
        if isinstance(alpha, (float, int)):
            alpha = torch.tensor([alpha, 1 - alpha])
        elif isinstance(alpha, list):
            alpha = torch.tensor(alpha)
        self.alpha = alpha
        self.gamma = gamma

    def forward(self, logits, target):
        target = target.view(-1, 1)
        logpt = F.log_softmax(logits, dim=1).gather(1, target).view(-1)
        pt = logpt.exp()
        if self.alpha is not None:
            at = self.alpha.gather(0, target.view(-1))  # raises
            logpt = logpt * at
        return (-((1 - pt) ** self.gamma) * logpt).mean()


def focal_loss_without_alpha():
    logits = torch.randn(6, 2, device=device, requires_grad=True)
    target = torch.randint(0, 2, (6,), device=device)
    FocalLoss(gamma=2.0)(logits, target).backward()


def focal_loss_with_alpha():
    logits = torch.randn(6, 2, device=device, requires_grad=True)
    target = torch.randint(0, 2, (6,), device=device)
    FocalLoss(alpha=0.25)(logits, target).backward()


class CenterLoss(nn.Module):
    def __init__(self, num_classes=5, feat_dim=4, use_gpu=True):
        super().__init__()
        self.num_classes = num_classes
        self.use_gpu = use_gpu
        if use_gpu:
            self.centers = nn.Parameter(torch.randn(num_classes, feat_dim).cuda())
        else:
            self.centers = nn.Parameter(torch.randn(num_classes, feat_dim))

    def forward(self, x, labels):
        distmat = torch.cdist(x, self.centers).pow(2)
        classes = torch.arange(self.num_classes).long()
        if self.use_gpu:
            classes = classes.cuda()
        labels = labels.unsqueeze(1).expand(x.size(0), self.num_classes)
        mask = labels.eq(classes.expand(x.size(0), self.num_classes))
        dist = distmat * mask.float()
        return dist.clamp(min=1e-12, max=1e12).sum() / x.size(0)


def center_loss():
    center = CenterLoss(use_gpu=torch.cuda.is_available())
    feats = torch.randn(6, 4).to(device)
    labels = torch.randint(0, 5, (6,)).to(device)
    optimizer = torch.optim.SGD(center.parameters(), lr=0.5)
    loss = center(feats, labels)
    loss.backward()
    optimizer.step()


def _smooth_one_hot(labels, classes, smoothing=0.1):
    shape = (labels.size(0), classes)
    with torch.no_grad():
        dist = torch.empty(size=shape)
        dist.fill_(smoothing / (classes - 1))
        dist.scatter_(1, labels.data.unsqueeze(1), 1.0 - smoothing)  # raises
    return dist


def label_smoothing_by_scatter():
    logits = torch.randn(6, 5, device=device, requires_grad=True)
    labels = torch.randint(0, 5, (6,), device=device)
    soft = _smooth_one_hot(labels, 5)
    return torch.sum(-soft * logits.log_softmax(-1), 1).mean()


class LabelSmoothing(nn.Module):
    def __init__(self, size, padding_idx, smoothing=0.0):
        super().__init__()
        self.criterion = nn.KLDivLoss(reduction="sum")
        self.padding_idx = padding_idx
        self.confidence = 1.0 - smoothing
        self.smoothing = smoothing
        self.size = size
        self.true_dist = None

    def forward(self, x, target):
        true_dist = x.data.clone()
        true_dist.fill_(self.smoothing / (self.size - 2))
        true_dist.scatter_(1, target.data.unsqueeze(1), self.confidence)
        true_dist[:, self.padding_idx] = 0
        mask = torch.nonzero(target.data == self.padding_idx)
        if mask.dim() > 0:
            true_dist.index_fill_(0, mask.squeeze(-1), 0.0)
        self.true_dist = true_dist
        return self.criterion(x, true_dist.clone().detach())


def annotated_transformer_smoothing():
    crit = LabelSmoothing(5, 0, 0.4)
    x = torch.randn(4, 5, device=device).log_softmax(-1)
    return crit(x, torch.tensor([2, 1, 0, 3], device=device)).item()


class DiceLoss(nn.Module):
    def __init__(self, n_classes, weight: Optional[List[float]] = None):
        super().__init__()
        self.n_classes = n_classes
        self.weight = weight

    def _one_hot(self, t):
        planes = [(t == i * torch.ones_like(t)).unsqueeze(1) for i in range(self.n_classes)]
        return torch.cat(planes, dim=1).float()

    def forward(self, inputs, target):
        inputs = torch.softmax(inputs, dim=1)
        target = self._one_hot(target)
        weight = self.weight if self.weight is not None else [1] * self.n_classes
        loss = 0.0
        for i in range(self.n_classes):
            inter = torch.sum(inputs[:, i] * target[:, i])
            z = torch.sum(inputs[:, i] ** 2) + torch.sum(target[:, i] ** 2)
            loss += (1 - (2 * inter + 1e-5) / (z + 1e-5)) * weight[i]
        return loss / self.n_classes


def dice_loss_with_list_weights():
    pred = torch.randn(2, 3, 4, 4, device=device, requires_grad=True)
    target = torch.randint(0, 3, (2, 4, 4), device=device)
    DiceLoss(3, weight=[0.2, 0.3, 0.5])(pred, target).backward()


class MultiTaskLoss(nn.Module):
    def __init__(self, tasks: Dict[str, float]):
        super().__init__()
        self.tasks = tasks
        self.log_vars = nn.ParameterDict({k: nn.Parameter(torch.zeros(1)) for k in tasks})

    def forward(self, losses: Dict[str, torch.Tensor]):
        total = torch.zeros(1)
        for name, w in self.tasks.items():
            precision = torch.exp(-self.log_vars[name])
            total = total + w * precision * losses[name] + self.log_vars[name]  # raises
        return total


def uncertainty_weighting():
    crit = MultiTaskLoss({"seg": 1.0, "depth": 0.5})
    crit.to(device)
    x = torch.randn(4, device=device, requires_grad=True)
    crit({"seg": x.pow(2).mean(), "depth": x.abs().mean()}).backward()


class WingLoss(nn.Module):
    def __init__(self, w=10.0, eps=2.0):
        super().__init__()
        self.w, self.eps = w, eps
        self.c = torch.tensor(w - w * math.log(1 + w / eps))

    def forward(self, pred, target):
        delta = (target - pred).abs()
        small = self.w * torch.log(1 + delta / self.eps)
        big = delta - self.c
        return torch.where(delta < self.w, small, big).mean()


def wing_loss():
    pred = torch.randn(4, 10, device=device, requires_grad=True)
    target = torch.randn(4, 10)
    WingLoss()(pred, target.to(pred)).backward()


def _gradient_penalty(critic, real, fake, lambda_gp=10.0):
    alpha = torch.rand(real.size(0), 1)
    interpolates = (alpha * real + (1 - alpha) * fake).requires_grad_(True)  # raises
    d = critic(interpolates)
    grads = torch.autograd.grad(
        d, interpolates, grad_outputs=torch.ones_like(d), create_graph=True, retain_graph=True
    )[0]
    return lambda_gp * ((grads.norm(2, dim=1) - 1) ** 2).mean()


def wgan_gradient_penalty():
    critic = nn.Sequential(nn.Linear(8, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)).to(device)
    real = torch.randn(4, 8).to(device)
    fake = torch.randn(4, 8).to(device).detach()
    loss = critic(fake).mean() - critic(real).mean() + _gradient_penalty(critic, real, fake)
    loss.backward()


def gan_step():
    gen = nn.Sequential(nn.Linear(3, 8), nn.Tanh()).to(device)
    disc = nn.Sequential(nn.Linear(8, 1), nn.Sigmoid()).to(device)
    adversarial_loss = nn.BCELoss()
    Tensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor
    imgs = torch.randn(4, 8)
    valid = Tensor(imgs.size(0), 1).fill_(1.0)
    fake = Tensor(imgs.size(0), 1).fill_(0.0)
    real_imgs = imgs.type(Tensor)
    z = Tensor(torch.randn(imgs.size(0), 3).tolist())
    gen_imgs = gen(z)
    g_loss = adversarial_loss(disc(gen_imgs), valid)
    d_loss = (adversarial_loss(disc(real_imgs), valid) + adversarial_loss(disc(gen_imgs.detach()), fake)) / 2
    (g_loss + d_loss).backward()


def kd_loss_with_mixed_soft_labels():
    teacher = nn.Linear(8, 5).to(device).eval()
    student = nn.Linear(8, 5).to(device)
    x = torch.randn(4, 8, device=device)
    y = torch.randint(0, 5, (4,), device=device)
    T, alpha = 2.0, 0.5
    with torch.no_grad():
        soft = F.softmax(teacher(x) / T, dim=1).cpu()
    out = student(x)
    hard_loss = F.cross_entropy(out, y)
    soft_loss = F.kl_div(F.log_softmax(out / T, dim=1), soft, reduction="batchmean")  # raises
    (alpha * hard_loss + (1 - alpha) * T * T * soft_loss).backward()
