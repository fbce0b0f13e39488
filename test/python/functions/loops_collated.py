"""Training loops on synthetic data: losses, collate functions, metrics, augmentation."""
import collections
import functools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset, WeightedRandomSampler

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Blobs(Dataset):
    """Points around one centre per class."""

    def __init__(self, size=48, features=6, classes=3, seed=0):
        rng = torch.Generator().manual_seed(seed)
        centres = torch.randn(classes, features, generator=rng)
        self.labels = torch.randint(0, classes, (size,), generator=rng)
        self.points = centres[self.labels] + 0.1 * torch.randn(size, features, generator=rng)
        self.classes = classes

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {"x": self.points[index], "y": self.labels[index], "id": index}


class Classifier(nn.Module):
    def __init__(self, features=6, hidden=16, classes=3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.head(self.body(x))


class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0, alpha=None, reduction="mean"):
        super().__init__()
        self.gamma = gamma
        self.reduction = reduction
        if isinstance(alpha, (list, tuple)):
            alpha = torch.tensor(alpha)
        self.alpha = alpha

    def forward(self, logits, targets):
        logp = F.log_softmax(logits, dim=-1).gather(1, targets[:, None]).squeeze(1)
        focus = (1 - logp.exp()) ** self.gamma
        if self.alpha is not None:
            logp = logp * self.alpha[targets]  # raises
        loss = -focus * logp
        return loss.mean() if self.reduction == "mean" else loss.sum()


def _epoch(model, loader, criterion, optimizer, device):
    model.train()
    total = 0.0
    for batch in loader:
        x, y = batch["x"].to(device), batch["y"].to(device)
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    return total / len(loader.dataset)


def case_focal_plain():
    model = Classifier().to(DEVICE)
    criterion = FocalLoss(gamma=1.5).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    loader = DataLoader(Blobs(), batch_size=16, shuffle=True)
    for _ in range(2):
        loss = _epoch(model, loader, criterion, optimizer, DEVICE)
        scheduler.step()
    assert math.isfinite(loss)


def case_focal_balanced():
    data = Blobs()
    share = torch.bincount(data.labels, minlength=data.classes) / len(data)
    model = Classifier(classes=data.classes).to(DEVICE)
    criterion = FocalLoss(alpha=(1 - share).tolist()).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for epoch in range(2):
        loss = _epoch(model, DataLoader(data, batch_size=16), criterion, optimizer, DEVICE)
        print(f"{epoch}: {loss:.3f}")


def case_weighted_cross_entropy():
    data = Blobs()
    counts = collections.Counter(data.labels.tolist())
    weight = torch.tensor([len(data) / max(counts[c], 1) for c in range(data.classes)])
    sampler = WeightedRandomSampler(weight[data.labels], num_samples=len(data))
    model = Classifier().to(DEVICE)
    criterion = nn.CrossEntropyLoss(weight=weight, label_smoothing=0.05).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    loss = _epoch(model, DataLoader(data, batch_size=8, sampler=sampler), criterion, optimizer, DEVICE)
    assert loss > 0


def case_weighted_partial():
    data = Blobs()
    weight = 1.0 / torch.bincount(data.labels).clamp(min=1).float()
    criteria = {
        "plain": F.cross_entropy,
        "balanced": functools.partial(F.cross_entropy, weight=weight / weight.sum()),
    }
    model = Classifier().to(DEVICE)
    x, y = data.points.to(DEVICE), data.labels.to(DEVICE)
    history = collections.defaultdict(list)
    for name, criterion in criteria.items():
        logits = model(x)
        history[name].append(criterion(logits, y).item())  # raises
    print({k: sum(v) / len(v) for k, v in history.items()})


def _move(item, device):
    match item:
        case torch.Tensor():
            return item.to(device, non_blocking=True)
        case dict():
            return {key: _move(value, device) for key, value in item.items()}
        case list():
            return [_move(value, device) for value in item]
        case _:
            return item


def _collate_views(rows):
    x = torch.stack([row["x"] for row in rows])
    y = torch.stack([row["y"] for row in rows])
    noisy = x + 0.05 * torch.randn_like(x)
    return {"views": [x, noisy], "y": y, "ids": [row["id"] for row in rows]}


def _collate_groups(rows):
    rows = sorted(rows, key=lambda row: int(row["y"]))
    x = torch.stack([row["x"] for row in rows])
    return {"views": [x, x.flip(0)], "targets": tuple(torch.stack([row["y"] for row in part]) for part in (rows, rows[::-1]))}


def case_collate_views():
    model = Classifier().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for batch in DataLoader(Blobs(), batch_size=12, collate_fn=_collate_views):
        batch = _move(batch, DEVICE)
        first, second = map(model, batch["views"])
        loss = F.cross_entropy(first, batch["y"]) + F.mse_loss(second, first.detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.device == next(model.parameters()).device


def case_collate_groups():
    model = Classifier().to(DEVICE)
    losses = []
    for batch in DataLoader(Blobs(), batch_size=12, collate_fn=_collate_groups):
        batch = _move(batch, DEVICE)
        for view, target in zip(batch["views"], batch["targets"]):
            losses.append(F.cross_entropy(model(view), target))  # raises
    torch.stack(losses).mean().backward()


class ConfusionMatrix:
    def __init__(self, classes):
        self.classes = classes
        self.reset()

    def reset(self):
        self.matrix = torch.zeros(self.classes, self.classes, dtype=torch.long)
        return self

    def update(self, predicted, target):
        flat = target * self.classes + predicted
        counts = torch.bincount(flat, minlength=self.classes**2)
        self.matrix += counts.view(self.classes, self.classes)  # raises

    @property
    def accuracy(self):
        return self.matrix.diag().sum().item() / self.matrix.sum().item()


class Mean:
    """A running mean that starts as a number and becomes whatever is added to it."""

    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        self.total = self.total + value.detach() * n
        self.count += n

    def compute(self):
        return float(self.total) / max(self.count, 1)


@torch.no_grad()
def _evaluate(model, loader, metric, mean):
    model.eval()
    for batch in loader:
        logits = model(batch["x"].to(DEVICE))
        mean.update(F.cross_entropy(logits, batch["y"].to(DEVICE)), len(batch["y"]))
        if metric is not None:
            metric.update(logits.argmax(1).cpu(), batch["y"])
    return mean.compute()


def case_evaluate_on_host():
    metric, mean = ConfusionMatrix(3), Mean()
    value = _evaluate(Classifier().to(DEVICE), DataLoader(Blobs(), batch_size=10), metric, mean)
    assert value > 0 and 0 <= metric.accuracy <= 1


def case_train_accuracy():
    data = Blobs()
    model = Classifier().to(DEVICE)
    metric = ConfusionMatrix(data.classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in DataLoader(data, batch_size=16, shuffle=True):
        x, y = (batch[k].to(DEVICE) for k in ("x", "y"))
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        metric.update(logits.argmax(dim=1), y)
    print(metric.accuracy)


def _mixup(x, y, alpha=0.4, per_sample=False):
    order = torch.randperm(len(x))
    beta = torch.distributions.Beta(alpha, alpha)
    lam = beta.sample((len(x), 1)) if per_sample else beta.sample().item()
    mixed = lam * x + (1 - lam) * x[order]  # raises
    return mixed, y, y[order], lam


def case_mixup_batch():
    data = Blobs()
    model = Classifier().to(DEVICE)
    x, y = data.points.to(DEVICE), data.labels.to(DEVICE)
    mixed, first, second, lam = _mixup(x, y)
    logits = model(mixed)
    loss = lam * F.cross_entropy(logits, first) + (1 - lam) * F.cross_entropy(logits, second)
    loss.backward()


def case_mixup_samples():
    data = Blobs()
    model = Classifier().to(DEVICE)
    loader = DataLoader(TensorDataset(data.points, data.labels), batch_size=24)
    for x, y in loader:
        x, y = x.to(DEVICE), y.to(DEVICE)
        mixed, first, second, lam = _mixup(x, y, per_sample=True)
        logits = model(mixed)
        each = lam.squeeze(1) * F.cross_entropy(logits, first, reduction="none")
        each = each + (1 - lam.squeeze(1)) * F.cross_entropy(logits, second, reduction="none")
        each.mean().backward()


def _penalty(critic, real, fake):
    eps = torch.rand(real.size(0), 1, device=real.device).expand_as(real)
    middle = (eps * real + (1 - eps) * fake).requires_grad_(True)
    score = critic(middle)
    (grad,) = torch.autograd.grad(score, middle, grad_outputs=torch.ones_like(score), create_graph=True)
    return ((grad.norm(2, dim=1) - 1) ** 2).mean()


def case_critic_penalty():
    critic = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)).to(DEVICE)
    generator = nn.Linear(4, 6).to(DEVICE)
    optimizer = torch.optim.RMSprop(critic.parameters(), lr=5e-4)
    for batch in DataLoader(Blobs(), batch_size=24):
        real = batch["x"].to(DEVICE)
        fake = generator(torch.randn(len(real), 4).to(real)).detach()
        loss = critic(fake).mean() - critic(real).mean() + 10 * _penalty(critic, real, fake)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for p in critic.parameters():
            p.data.clamp_(-1, 1)


def case_generator_labels():
    critic = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)).to(DEVICE)
    generator = nn.Linear(4, 6).to(DEVICE)
    criterion = nn.BCEWithLogitsLoss()
    soft = functools.partial(torch.full, fill_value=0.9)
    real = Blobs(16).points.to(DEVICE)
    noise = torch.randn(real.size(0), 4, device=DEVICE)
    scores = torch.cat([critic(real), critic(generator(noise).detach())])
    wanted = torch.cat([soft((len(real), 1)), torch.zeros(len(real), 1)])
    loss = criterion(scores, wanted)  # raises
    loss.backward()


def case_amp_accumulation():
    model = Classifier().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scaler = torch.cuda.amp.GradScaler(enabled=torch.cuda.is_available())
    steps = 2
    for number, batch in enumerate(DataLoader(Blobs(), batch_size=12, pin_memory=True), 1):
        x = batch["x"].cuda(non_blocking=True)
        y = batch["y"].cuda(non_blocking=True)
        with torch.autocast("cuda"):
            loss = F.cross_entropy(model(x), y) / steps
        scaler.scale(loss).backward()
        if number % steps == 0:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
