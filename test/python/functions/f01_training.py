import argparse
import random
from collections import defaultdict

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset


class Net(nn.Module):
    def __init__(self, width=16, classes=3):
        super().__init__()
        self.fc1 = nn.Linear(6, width)
        self.drop = nn.Dropout(0.1)
        self.fc2 = nn.Linear(width, classes)

    def forward(self, x):
        return self.fc2(self.drop(F.relu(self.fc1(x))))


class DictDataset(Dataset):
    def __init__(self, n=8):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return {
            "inputs": torch.randn(6),
            "labels": torch.tensor(i % 3),
            "weight": torch.ones(()),
            "name": f"sample-{i}",
        }


def _loader(n=8, batch_size=4):
    data = TensorDataset(torch.randn(n, 6), torch.randint(0, 3, (n,)))
    return DataLoader(data, batch_size=batch_size, shuffle=True)


def _train(args, model, device, train_loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = F.log_softmax(model(data), dim=1)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            args.log.append(f"epoch {epoch} loss {loss.item():.4f}")


def _test(model, device, test_loader):
    model.eval()
    test_loss = 0
    correct = 0
    with torch.no_grad():
        for data, target in test_loader:
            data = data.to(device)
            output = F.log_softmax(model(data), dim=1)
            test_loss += F.nll_loss(output, target, reduction="sum").item()  # raises
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    return test_loss / len(test_loader.dataset), correct


def mnist_style_train():
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-cuda", action="store_true", default=False)
    parser.add_argument("--log-interval", type=int, default=10)
    args = parser.parse_args([])
    args.log = []
    use_cuda = not args.no_cuda and torch.cuda.is_available()
    device = torch.device("cuda" if use_cuda else "cpu")
    model = Net().to(device)
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(2):
        _train(args, model, device, _loader(), optimizer, epoch)
        scheduler.step()


def mnist_style_test():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Net()
    model.to(device)
    return _test(model, device, _loader())


def weighted_classes():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    counts = torch.tensor([10.0, 40.0, 50.0])
    weights = counts.sum() / (len(counts) * counts)
    model = Net().to(device)
    criterion = nn.CrossEntropyLoss(weight=weights)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for x, y in _loader():
        x = x.to(device, non_blocking=True)
        y = y.to(device, non_blocking=True)
        loss = criterion(model(x), y)  # raises
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


def weighted_classes_moved():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    counts = torch.tensor([10.0, 40.0, 50.0])
    weights = counts.sum() / (len(counts) * counts)
    model = Net().to(device)
    criterion = nn.CrossEntropyLoss(weight=weights)
    criterion.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for x, y in _loader():
        x = x.to(device, non_blocking=True)
        y = y.to(device, non_blocking=True)
        loss = criterion(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


def train_on_dict_batches():
    device = torch.device("cuda:0")
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    history = defaultdict(list)
    for batch in DataLoader(DictDataset(), batch_size=4):
        batch = {k: v.to(device) if torch.is_tensor(v) else v for k, v in batch.items()}
        logits = model(batch["inputs"])
        per_sample = F.cross_entropy(logits, batch["labels"], reduction="none")
        loss = (per_sample * batch["weight"]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history["loss"].append(loss.item())
        history["names"].extend(batch["name"])
    return history


def train_with_sample_weights():
    device = torch.device("cuda:0")
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    keys = ("inputs", "labels")
    for batch in DataLoader(DictDataset(), batch_size=4):
        for k in keys:
            batch[k] = batch[k].to(device)
        logits = model(batch["inputs"])
        per_sample = F.cross_entropy(logits, batch["labels"], reduction="none")
        loss = (per_sample * batch["weight"]).mean()  # raises
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def _mixup_data(x, y, alpha=0.4):
    lam = torch.distributions.Beta(alpha, alpha).sample()
    index = torch.randperm(x.size(0))
    mixed = lam * x + (1 - lam) * x[index]
    return mixed, y, y[index], lam


def mixup_training():
    model = Net()
    if torch.cuda.is_available():
        model = model.cuda()
    for x, y in _loader():
        if torch.cuda.is_available():
            x, y = x.cuda(), y.cuda()
        x, y_a, y_b, lam = _mixup_data(x, y)
        out = model(x)
        loss = lam * F.cross_entropy(out, y_a) + (1 - lam) * F.cross_entropy(out, y_b)
        loss.backward()


def _mixup_per_sample(x, y, alpha, num_classes):
    lam = torch.distributions.Beta(alpha, alpha).sample((x.size(0),))
    lam = lam.view(-1, *([1] * (x.dim() - 1)))
    perm = torch.randperm(x.size(0), device=x.device)
    x = lam * x + (1.0 - lam) * x[perm]  # raises
    target = F.one_hot(y, num_classes).float()
    target = lam * target + (1.0 - lam) * target[perm]
    return x, target


def mixup_training_per_sample():
    model = Net()
    use_cuda = torch.cuda.is_available()
    if use_cuda:
        model.cuda()
    for x, y in _loader():
        if use_cuda:
            x, y = x.cuda(), y.cuda()
        x, soft = _mixup_per_sample(x, y, alpha=0.2, num_classes=3)
        log_probs = F.log_softmax(model(x), dim=-1)
        loss = -(soft * log_probs).sum(dim=-1).mean()
        loss.backward()


def amp_training():
    device = torch.device("cuda")
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=True)
    running = torch.zeros(1)
    for step, (x, y) in enumerate(_loader()):
        x, y = x.to(device), y.to(device)
        with torch.cuda.amp.autocast(enabled=False):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        running += loss.detach().cpu()
    return running / (step + 1)


def loss_average_over_epoch():
    device = torch.device("cuda")
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    running = torch.zeros(1)
    for step, (x, y) in enumerate(_loader()):
        x, y = x.to(device), y.to(device)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.detach()  # raises
    return running / (step + 1)


def discarded_target_move():
    args = argparse.Namespace(device="cuda:1", seed=0)
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    net = Net().to(args.device)
    optim = torch.optim.Adam(net.parameters())
    for inputs, labels in _loader():
        inputs = inputs.to(args.device)
        labels.to(args.device)
        outputs = net(inputs)
        loss = F.cross_entropy(outputs, labels)  # raises
        optim.zero_grad()
        loss.backward()
        optim.step()


def gradient_accumulation():
    device = f"cuda:{torch.cuda.current_device()}" if torch.cuda.is_available() else "cpu"
    net = Net().to(device)
    optim = torch.optim.AdamW(net.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(optim, T_max=4)
    losses, steps = [], 2
    for i, batch in enumerate(_loader()):
        inputs, labels = (t.to(device) for t in batch)
        loss = F.cross_entropy(net(inputs), labels) / steps
        loss.backward()
        losses.append(loss.detach())
        if (i + 1) % steps == 0:
            optim.step()
            sched.step()
            optim.zero_grad()
    total = torch.stack(losses).sum()
    best = torch.tensor(float("inf"))
    if total < best:
        best = total
    return best.item()
