import numpy as np
import torch
from torch import nn
import torch.nn.functional as F


class FocalLoss(nn.Module):
    """alpha: float or list with one weight per class"""

    def __init__(self, gamma=2.0, alpha=None, size_average=True):
        super().__init__()
        self.gamma = gamma
        if isinstance(alpha, (float, int)):
            alpha = torch.Tensor([alpha, 1 - alpha])
        if isinstance(alpha, list):
            alpha = torch.Tensor(alpha)
        self.alpha = alpha
        self.size_average = size_average

    def forward(self, logits, target):
        target = target.view(-1, 1)
        logpt = F.log_softmax(logits, dim=1).gather(1, target).view(-1)
        pt = logpt.exp()
        if self.alpha is not None:
            at = self.alpha.gather(0, target.view(-1))  # raises
            logpt = logpt * at
        loss = -1 * (1 - pt) ** self.gamma * logpt
        return loss.mean() if self.size_average else loss.sum()


class FocalLossV2(nn.Module):
    def __init__(self, gamma=2.0, alpha=None):
        super().__init__()
        self.gamma, self.alpha = gamma, alpha

    def forward(self, logits, target):
        alpha = self.alpha
        if alpha is not None:
            if alpha.type() != logits.data.type():
                self.alpha = alpha = alpha.type_as(logits.data)
            ce = F.cross_entropy(logits, target, weight=alpha, reduction="none")
        else:
            ce = F.cross_entropy(logits, target, reduction="none")
        return ((1 - torch.exp(-ce)) ** self.gamma * ce).mean()


def case_focal_balanced():
    criterion = FocalLoss(alpha=[0.25, 0.5, 0.25]).cuda()
    logits = torch.randn(6, 3, device="cuda", requires_grad=True)
    criterion(logits, torch.randint(3, (6,), device="cuda")).backward()


def case_focal_plain():
    criterion = FocalLoss()
    criterion.cuda()
    logits = torch.randn(6, 3, device="cuda", requires_grad=True)
    criterion(logits, torch.randint(3, (6,), device="cuda")).backward()


def case_focal_v2():
    criterion = FocalLossV2(alpha=torch.tensor([1.0, 2.0, 1.0]))
    logits = torch.randn(6, 3).cuda().requires_grad_()
    for _ in range(2):
        criterion(logits, torch.randint(3, (6,)).cuda()).backward()


class DiceLoss(nn.Module):
    def __init__(self, n_classes, weights=None):
        super().__init__()
        self.n_classes = n_classes
        self.register_buffer("weights", torch.as_tensor(weights) if weights is not None else torch.ones(n_classes))

    def one_hot(self, labels):
        return torch.stack([labels == i for i in range(self.n_classes)], dim=1).float()

    def forward(self, logits, labels):
        probs, onehot = logits.softmax(1), self.one_hot(labels)
        inter = (probs * onehot).sum((0, 2, 3))
        union = probs.sum((0, 2, 3)) + onehot.sum((0, 2, 3))
        dice = 1 - (2 * inter + 1e-5) / (union + 1e-5)
        return (dice * self.weights).sum() / self.weights.sum()  # raises


def segmentation_batch(device):
    return torch.randn(2, 3, 4, 4, device=device), torch.randint(0, 3, (2, 4, 4), device=device)


def case_dice_moved():
    device = torch.device("cuda", 1)
    criterion = DiceLoss(3, [0.2, 0.4, 0.4]).to(device)
    logits, labels = segmentation_batch(device)
    print(criterion(logits, labels))


def case_dice_combo():
    device = torch.device("cuda", 1)
    losses = {"ce": nn.CrossEntropyLoss(), "dice": DiceLoss(3, [0.2, 0.4, 0.4])}
    logits, labels = segmentation_batch(device)
    total = sum(fn(logits, labels) for name, fn in losses.items())
    return total.item()


class ConfusionMatrix:
    def __init__(self, num_classes):
        self.num_classes = num_classes
        self.mat = None

    def update(self, a, b):
        n = self.num_classes
        if self.mat is None:
            self.mat = torch.zeros((n, n), dtype=torch.int64, device=a.device)
        with torch.no_grad():
            k = (a >= 0) & (a < n)
            inds = n * a[k].to(torch.int64) + b[k]
            self.mat += torch.bincount(inds, minlength=n**2).reshape(n, n)

    def compute(self):
        h = self.mat.float()
        acc_global = torch.diag(h).sum() / h.sum()
        iu = torch.diag(h) / (h.sum(1) + h.sum(0) - torch.diag(h))
        return acc_global.item(), iu.mean().item()


def case_confmat():
    cm = ConfusionMatrix(3)
    for _ in range(2):
        logits, labels = segmentation_batch("cuda")
        cm.update(labels.flatten(), logits.argmax(1).flatten())
    print("%.3f %.3f" % cm.compute())


class AverageMeter(object):
    def __init__(self):
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def accuracy(output, target, topk=(1,)):
    maxk = max(topk)
    _, pred = output.topk(maxk, 1, True, True)
    pred = pred.t()
    correct = pred.eq(target.view(1, -1).expand_as(pred))
    res = []
    for k in topk:
        res.append(correct[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / target.size(0)))
    return res


def case_meters():
    top1, top3 = AverageMeter(), AverageMeter()
    for _ in range(3):
        out = torch.randn(5, 4, device="cuda")
        target = torch.randint(4, (5,)).to(out.device)
        a, b = accuracy(out, target, topk=(1, 3))
        top1.update(a[0], out.size(0))
        top3.update(b[0], out.size(0))
    summary = np.array([float(top1.avg), float(top3.avg)])
    assert summary.shape == (2,)


def compute_auc(scores, labels):
    order = np.argsort(-scores)
    labels = labels[order]
    tps = np.cumsum(labels)
    return tps[-1] / max(len(labels), 1)


def case_auc_from_outputs():
    model = nn.Linear(4, 1).cuda()
    all_scores, all_labels = [], []
    for _ in range(2):
        x, y = torch.randn(3, 4), torch.randint(0, 2, (3,))
        with torch.no_grad():
            prob = torch.sigmoid(model(x.cuda())).squeeze(1)
        all_scores.append(prob)
        all_labels.append(y)
    labels = torch.cat(all_labels).numpy()
    scores = torch.cat(all_scores).numpy()  # raises
    return compute_auc(scores, labels)


def case_f1_on_host():
    model = nn.Linear(4, 2).to("cuda:2")
    preds, gold = [], []
    for _ in range(2):
        x, y = torch.randn(3, 4), torch.randint(0, 2, (3,))
        logits = model(x.to("cuda:2"))
        preds.extend(logits.argmax(-1).tolist())
        gold += y.tolist()
    preds, gold = np.array(preds), np.array(gold)
    tp = ((preds == 1) & (gold == 1)).sum()
    return 2 * tp / max((preds == 1).sum() + (gold == 1).sum(), 1)


# SupCon, https://arxiv.org/abs/2004.11362
def supcon_loss(features, labels=None, temperature=0.07):
    device = torch.device("cuda") if features.is_cuda else torch.device("cpu")
    batch_size = features.shape[0]
    labels = labels.contiguous().view(-1, 1)
    mask = torch.eq(labels, labels.T).float().to(device)
    logits = torch.div(torch.matmul(features, features.T), temperature)
    logits = logits - logits.max(dim=1, keepdim=True)[0].detach()
    logits_mask = torch.scatter(torch.ones_like(mask), 1, torch.arange(batch_size).view(-1, 1).to(device), 0)
    mask = mask * logits_mask
    exp_logits = torch.exp(logits) * logits_mask  # raises
    log_prob = logits - torch.log(exp_logits.sum(1, keepdim=True))
    return -((mask * log_prob).sum(1) / (mask.sum(1) + 1e-6)).mean()


def case_supcon_first_gpu():
    feats = F.normalize(torch.randn(6, 8, device="cuda:0"), dim=1)
    return supcon_loss(feats, torch.randint(0, 2, (6,)))


def case_supcon_second_gpu():
    feats = F.normalize(torch.randn(6, 8, device="cuda:1"), dim=1)
    return supcon_loss(feats, torch.randint(0, 2, (6,)))


def info_nce(q, k, queue, T=0.2):
    l_pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
    l_neg = torch.einsum("nc,ck->nk", [q, queue.clone().detach()])
    logits = torch.cat([l_pos, l_neg], dim=1) / T
    labels = torch.zeros(logits.shape[0], dtype=torch.long)
    return F.cross_entropy(logits, labels)  # raises


def case_moco_pretrain():
    enc_q, enc_k = nn.Linear(8, 4).cuda(), nn.Linear(8, 4).cuda()
    queue = F.normalize(torch.randn(4, 16), dim=0).cuda()
    im_q, im_k = torch.randn(5, 8).cuda(), torch.randn(5, 8).cuda()
    with torch.no_grad():
        k = F.normalize(enc_k(im_k), dim=1)
    info_nce(F.normalize(enc_q(im_q), dim=1), k, queue).backward()


def gradient_penalty(critic, real, fake):
    alpha = torch.rand(real.size(0), 1)
    alpha = alpha.expand(real.size()).cuda()
    inter = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    d = critic(inter)
    grads = torch.autograd.grad(outputs=d, inputs=inter, grad_outputs=torch.ones(d.size()),  # raises
                                create_graph=True, retain_graph=True, only_inputs=True)[0]
    return ((grads.norm(2, dim=1) - 1) ** 2).mean()


def gradient_penalty_fixed(critic, real, fake):
    alpha = torch.rand(real.size(0), 1).to(real)
    inter = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    d = critic(inter)
    grads, = torch.autograd.grad(d, inter, torch.ones_like(d), create_graph=True)
    return (grads.flatten(1).norm(dim=1) - 1).square().mean()


def case_wgan_gp():
    critic = nn.Sequential(nn.Linear(3, 5), nn.LeakyReLU(0.2), nn.Linear(5, 1)).cuda()
    real, fake = torch.randn(4, 3).cuda(), torch.randn(4, 3).cuda()
    loss = critic(fake).mean() - critic(real).mean() + 10 * gradient_penalty(critic, real, fake)
    loss.backward()


def case_wgan_gp_like():
    critic = nn.Sequential(nn.Linear(3, 5), nn.LeakyReLU(0.2), nn.Linear(5, 1)).to("cuda:3")
    real, fake = (torch.randn(4, 3, device="cuda:3") for _ in range(2))
    (critic(fake).mean() + 10 * gradient_penalty_fixed(critic, real, fake)).backward()
