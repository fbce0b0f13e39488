"""Small training loops, the way they are found in project repositories."""
import copy
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader, TensorDataset


class SmallCNN(nn.Module):
    def __init__(self, num_classes=4):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
        self.conv2 = nn.Conv2d(4, 8, 3, padding=1)
        self.fc = nn.Linear(8 * 2 * 2, num_classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(torch.flatten(x, 1))


def fake_images(n=8, classes=4):
    return TensorDataset(torch.randn(n, 1, 8, 8), torch.randint(0, classes, (n,)))


def train_epoch(model, loader, optimizer, device, epoch, log_interval=2):
    model.train()
    running = 0.0
    for batch_idx, (data, target) in enumerate(loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
        running += loss.item()
        if batch_idx % log_interval == 0:
            print(f"epoch {epoch} [{batch_idx}] loss {loss.item():.3f}")
    return running / len(loader)


def evaluate(model, loader, device):
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for data, target in loader:
            data = data.to(device)
            output = model(data)
            test_loss += F.cross_entropy(output, target, reduction="sum").item()  # raises
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    return test_loss, correct


def case_mnist_style_main():
    use_cuda = torch.cuda.is_available()
    device = torch.device("cuda" if use_cuda else "cpu")
    loader = DataLoader(fake_images(), batch_size=4)
    model = SmallCNN().to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    for epoch in range(1, 2):
        train_epoch(model, loader, optimizer, device, epoch)
        evaluate(model, loader, device)


def case_optimizer_before_move():
    model = SmallCNN()
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1)
    model.cuda()
    for epoch in range(2):
        train_epoch(model, DataLoader(fake_images(), batch_size=4), optimizer, torch.device("cuda", 0), epoch)
        scheduler.step()


def case_move_after_warmup():
    # a short warm-up on the host, then everything on the card
    model = SmallCNN()
    opt = optim.Adam(model.parameters(), lr=1e-3)
    images, labels = fake_images().tensors
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    opt.step()
    opt.zero_grad(set_to_none=True)

    model.to("cuda")
    images, labels = images.to("cuda"), labels.to("cuda")
    for _ in range(2):
        loss = F.cross_entropy(model(images), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()  # raises


def mixup_data(x, y, alpha=0.4, use_cuda=True):
    lam = torch.distributions.Beta(alpha, alpha).sample().item() if alpha > 0 else 1
    index = torch.randperm(x.size(0))
    if use_cuda:
        index = index.cuda()
    mixed = lam * x + (1 - lam) * x[index, :]
    return mixed, y, y[index], lam  # raises


def case_mixup_training():
    dev = "cuda:0"
    net = SmallCNN().to(dev)
    x, y = [t.to(dev) for t in fake_images().tensors]
    inputs, y_a, y_b, lam = mixup_data(x, y)
    criterion = nn.CrossEntropyLoss()
    out = net(inputs)
    loss = lam * criterion(out, y_a) + (1 - lam) * criterion(out, y_b)
    loss.backward()


def case_mixup_labels_kept_by_loader():
    dev = "cuda:0"
    net = SmallCNN().to(dev)
    for x, y in DataLoader(fake_images(), batch_size=4):
        inputs, y_a, y_b, lam = mixup_data(x.to(dev), y)
        loss = F.cross_entropy(net(inputs), y_a) * lam
        loss.backward()


# ReLU(label smoothing)
class LabelSmoothingLoss(nn.Module):
    def __init__(self, classes, smoothing=0.1):
        super(LabelSmoothingLoss, self).__init__()
        self.confidence = 1.0 - smoothing
        self.smoothing = smoothing
        self.cls = classes

    def forward(self, pred, target):
        pred = pred.log_softmax(dim=-1)
        with torch.no_grad():
            true_dist = torch.zeros(pred.size())
            true_dist.fill_(self.smoothing / (self.cls - 1))
            true_dist.scatter_(1, target.data.unsqueeze(1), self.confidence)  # raises
        return torch.mean(torch.sum(-true_dist * pred, dim=-1))


def case_label_smoothing():
    net = SmallCNN().cuda()
    criterion = LabelSmoothingLoss(4).cuda()
    x, y = fake_images().tensors
    loss = criterion(net(x.cuda()), y.cuda())
    loss.backward()


def case_grad_accumulation_norms():
    device = torch.device("cuda:1")
    net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 1)).to(device)
    optimizer = optim.AdamW(net.parameters(), lr=1e-3)
    total_norm = torch.zeros(1)
    step_times = []
    for micro in range(4):
        begin = time.time()
        loss = net(torch.randn(3, 4, device=device)).pow(2).mean() / 4
        loss.backward()
        step_times.append(time.time() - begin)
    for p in net.parameters():
        total_norm += p.grad.norm(2) ** 2  # raises
    if total_norm.sqrt() > 1.0:
        for p in net.parameters():
            p.grad.mul_(1.0 / total_norm.sqrt().item())
    optimizer.step()


def case_clip_and_log():
    device = torch.device("cuda:1")
    net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 1)).to(device)
    optimizer = optim.AdamW(net.parameters(), lr=1e-3)
    history = torch.zeros(3)
    for i in range(3):
        loss = net(torch.randn(3, 4, device=device)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        history[i] = loss.detach()
        scale = torch.tensor(0.5)
        _ = scale * norm
    return history.mean().item()


def case_early_stopping_patience():
    model = nn.Linear(3, 1).to("cuda")
    best, best_state, patience = torch.tensor(float("inf")), None, 2
    for epoch in range(4):
        val = F.mse_loss(model(torch.ones(2, 3, device="cuda")), torch.zeros(2, 1, device="cuda"))
        if val < best:
            best = val
            best_state = copy.deepcopy(model.state_dict())
        else:
            patience -= 1
            if patience == 0:
                break
    model.load_state_dict(best_state)
    assert not math.isinf(float(best))


def case_validation_preds_buffer():
    model = nn.Linear(3, 2).to("cuda").eval()
    data = torch.randn(10, 3)
    preds = torch.zeros(10, dtype=torch.long)
    labels = torch.randint(0, 2, (10,))
    with torch.inference_mode():
        for start in range(0, 10, 5):
            chunk = data[start:start + 5].to("cuda")
            preds[start:start + 5] = model(chunk).argmax(1)
    acc = (preds == labels).float().mean()
    hard = data[preds != labels]
    return acc.item(), hard.shape


def case_amp_step():
    net = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3)).cuda()
    scaler = torch.cuda.amp.GradScaler(init_scale=2.0)
    opt = optim.SGD(net.parameters(), lr=0.01)
    weights = torch.tensor([0.2, 0.3, 0.5])
    for _ in range(2):
        x = torch.randn(4, 6).cuda(non_blocking=True)
        y = torch.randint(3, (4,)).cuda(non_blocking=True)
        opt.zero_grad()
        with torch.cuda.amp.autocast(enabled=False):
            loss = F.cross_entropy(net(x), y, weight=weights)  # raises
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
