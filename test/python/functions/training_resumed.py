"""Pieces of training loops: loading, losses, optimizers, averaging, resuming."""
import copy
import io
import math
from collections import defaultdict
from contextlib import nullcontext

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class ToyTexts(Dataset):
    def __init__(self, size=8, width=6):
        self.tokens = [torch.randint(1, 11, (2 + i % width,)) for i in range(size)]
        self.labels = [i % 3 for i in range(size)]

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"ids": self.tokens[index], "label": self.labels[index]}


def _collate(batch):
    longest = max(len(each["ids"]) for each in batch)
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    for row, each in enumerate(batch):
        ids[row, :len(each["ids"])] = each["ids"]
    return {"ids": ids, "mask": ids.ne(0), "labels": torch.tensor([each["label"] for each in batch]),
            "names": [f"text-{row}" for row in range(len(batch))]}


def _move(batch, device, skip=()):
    return {key: value.to(device, non_blocking=True) if torch.is_tensor(value) and key not in skip else value
            for key, value in batch.items()}


class Classifier(nn.Module):
    def __init__(self, vocabulary=12, width=8, classes=3):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width, padding_idx=0)
        self.head = nn.Linear(width, classes)

    def forward(self, ids, mask):
        hidden = self.embed(ids)
        weight = mask.unsqueeze(-1).to(hidden.dtype)
        pooled = (hidden * weight).sum(1) / weight.sum(1).clamp(min=1)
        return self.head(pooled)


def _loader(size=8):
    return DataLoader(ToyTexts(size), batch_size=4, shuffle=False, collate_fn=_collate)


def case_epoch_with_moved_batches():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Classifier().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    total = torch.tensor(0.0)
    for step, batch in enumerate(_loader()):
        batch = _move(batch, device)
        logits = model(batch["ids"], batch["mask"])
        loss = F.cross_entropy(logits, batch["labels"])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total = total + loss.detach()
    return total.item() / (step + 1)


def case_epoch_keeping_labels_for_metrics():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Classifier().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    seen = []
    for batch in _loader():
        batch = _move(batch, device, skip=("labels",))
        seen.extend(batch["labels"].tolist())
        logits = model(batch["ids"], batch["mask"])
        loss = F.cross_entropy(logits, batch["labels"], label_smoothing=0.1)  # raises
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return seen


class WeightedObjective:
    """Class weights from the frequencies of the training set."""

    def __init__(self, labels, classes=3):
        counts = torch.bincount(torch.as_tensor(labels), minlength=classes).float()
        self.weights = counts.sum() / (classes * counts.clamp(min=1))

    def __call__(self, logits, target):
        return F.cross_entropy(logits, target, weight=self.weights)  # raises

    def on(self, device):
        other = copy.copy(self)
        other.weights = self.weights.to(device)
        return other


def case_weighted_objective_from_counts():
    device = "cuda:0"
    data = ToyTexts()
    objective = WeightedObjective(data.labels)
    model = Classifier().to(device)
    batch = _move(next(iter(_loader())), device)
    loss = objective(model(batch["ids"], batch["mask"]), batch["labels"])
    loss.backward()
    return float(loss)


def case_weighted_objective_on_device():
    device = "cuda:1"
    data = ToyTexts()
    objective = WeightedObjective(data.labels).on(device)
    model = Classifier().to(device)
    batch = _move(next(iter(_loader())), device)
    loss = objective(model(batch["ids"], batch["mask"]), batch["labels"])
    loss.backward()
    return float(loss)


class ModuleEma:
    def __init__(self, model, decay=0.99, device=None):
        self.module = copy.deepcopy(model).eval()
        self.decay = decay
        self.device = device
        if device is not None:
            self.module.to(device=device)

    @torch.no_grad()
    def update(self, model):
        for average, current in zip(self.module.state_dict().values(), model.state_dict().values()):
            if self.device is not None:
                current = current.to(device=self.device)
            average.copy_(self.decay * average + (1.0 - self.decay) * current)


class ShadowEma:
    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.shadow = {name: value.detach().clone() for name, value in model.named_parameters() if value.requires_grad}

    @torch.no_grad()
    def update(self, model):
        for name, value in model.named_parameters():
            if name in self.shadow:
                self.shadow[name].mul_(self.decay).add_(value, alpha=1 - self.decay)  # raises

    def store(self, model):
        for name, value in model.named_parameters():
            if name in self.shadow:
                value.data.copy_(self.shadow[name])


def case_average_kept_on_the_host():
    model = Classifier().cuda()
    average = ModuleEma(model, device="cpu")
    batch = _move(next(iter(_loader())), "cuda")
    for _ in range(2):
        model(batch["ids"], batch["mask"]).sum().backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
        average.update(model)
    host = next(iter(_loader()))
    return average.module(host["ids"], host["mask"]).argmax(-1).numpy()


def case_shadow_made_before_move():
    model = Classifier()
    ema = ShadowEma(model)
    model = model.to("cuda")
    batch = _move(next(iter(_loader())), "cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    F.cross_entropy(model(batch["ids"], batch["mask"]), batch["labels"]).backward()
    optimizer.step()
    ema.update(model)


def case_shadow_made_after_move_and_stored_to_host():
    model = Classifier().to("cuda")
    ema = ShadowEma(model)
    batch = _move(next(iter(_loader())), "cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    F.cross_entropy(model(batch["ids"], batch["mask"]), batch["labels"]).backward()
    optimizer.step()
    ema.update(model)
    exported = Classifier()
    ema.store(exported)
    host = next(iter(_loader()))
    return exported(host["ids"], host["mask"]).detach().numpy()


def _one_step(model, optimizer, device):
    batch = _move(next(iter(_loader())), device)
    optimizer.zero_grad()
    F.cross_entropy(model(batch["ids"], batch["mask"]), batch["labels"]).backward()
    optimizer.step()


def _checkpoint(device):
    model = Classifier().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    _one_step(model, optimizer, device)
    stream = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 1}, stream)
    stream.seek(0)
    return stream


def case_resume_on_host_state_then_train():
    device = torch.device("cuda", 0)
    saved = torch.load(_checkpoint(device), map_location="cpu")
    model = Classifier().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    _one_step(model, optimizer, device)
    return saved["step"] + 1


def case_resume_then_place():
    device = torch.device("cuda", 0)
    saved = torch.load(_checkpoint("cpu"), map_location="cpu")
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    model.to(device)
    batch = _move(next(iter(_loader())), device)
    F.cross_entropy(model(batch["ids"], batch["mask"]), batch["labels"]).backward()
    optimizer.step()  # raises


class LookaheadSgd(torch.optim.Optimizer):
    def __init__(self, parameters, lr=0.1, period=2, alpha=0.5):
        super().__init__(parameters, {"lr": lr})
        self.period, self.alpha, self.count = period, alpha, 0

    @torch.no_grad()
    def step(self, closure=None):
        self.count += 1
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if "slow" not in state:
                    state["slow"] = parameter.detach().clone()
                    state["norm"] = torch.zeros(())
                state["norm"] = torch.maximum(state["norm"], parameter.grad.norm().cpu())
                parameter.add_(parameter.grad, alpha=-group["lr"])
                if self.count % self.period == 0:
                    state["slow"].lerp_(parameter, self.alpha)
                    parameter.copy_(state["slow"])


class SignMomentum(torch.optim.Optimizer):
    def __init__(self, parameters, lr=1e-3, beta=0.9):
        super().__init__(parameters, dict(lr=lr, beta=beta))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.zeros(p.shape, dtype=p.dtype)
                update = state["momentum"].mul(group["beta"]).add(p.grad, alpha=1 - group["beta"])  # raises
                p.add_(update.sign(), alpha=-group["lr"])
                state["momentum"] = update


def case_lookahead_over_two_devices():
    first, second = nn.Linear(4, 4).to("cuda:0"), nn.Linear(4, 2).to("cuda:1")
    optimizer = LookaheadSgd([*first.parameters(), *second.parameters()])
    for _ in range(4):
        optimizer.zero_grad()
        hidden = first(torch.randn(3, 4, device="cuda:0")).relu()
        second(hidden.to("cuda:1")).pow(2).mean().backward()
        optimizer.step()
    return max(state["norm"].item() for state in optimizer.state.values())


def case_sign_momentum():
    model = Classifier().to("cuda:2")
    optimizer = SignMomentum(model.parameters())
    _one_step(model, optimizer, "cuda:2")


def _accumulate(model, batches, device, accumulation=2, amp=False):
    running = torch.zeros(1)
    context = torch.autocast("cuda", dtype=torch.bfloat16) if amp else nullcontext()
    for index, batch in enumerate(batches):
        batch = _move(batch, device)
        with context:
            logits = model(batch["ids"], batch["mask"])
        loss = F.cross_entropy(logits.float(), batch["labels"]) / accumulation
        loss.backward()
        running += loss.detach()  # raises
    return running


def case_accumulated_running_loss():
    model = Classifier().cuda()
    running = _accumulate(model, _loader(), torch.device("cuda"))
    return math.isfinite(running.item())


def case_accumulated_running_loss_on_cpu():
    model = Classifier()
    running = _accumulate(model, _loader(), torch.device("cpu"))
    return math.isfinite(running.item())


def case_gradients_clipped_across_devices():
    parts = nn.ModuleDict({"low": nn.Linear(4, 4).to("cuda:0"), "high": nn.Linear(4, 1).to("cuda:3")})
    out = parts["high"](parts["low"](torch.ones(2, 4, device="cuda:0")).to("cuda:3"))
    out.sum().backward()
    norm = torch.nn.utils.clip_grad_norm_(parts.parameters(), 0.5)
    history = defaultdict(list)
    history["norm"].append(norm.item())
    return history


def case_gradient_norm_by_hand_across_devices():
    parts = nn.ModuleDict({"low": nn.Linear(4, 4).to("cuda:0"), "high": nn.Linear(4, 1).to("cuda:3")})
    out = parts["high"](parts["low"](torch.ones(2, 4, device="cuda:0")).to("cuda:3"))
    out.sum().backward()
    norms = [parameter.grad.detach().norm() for parameter in parts.parameters() if parameter.grad is not None]
    total = torch.stack(norms).norm()  # raises
    scale = min(1.0, 0.5 / (total.item() + 1e-6))
    for parameter in parts.parameters():
        parameter.grad.mul_(scale)


def case_distilled_with_teacher_on_other_gpu():
    student, teacher = Classifier().to("cuda:0"), Classifier(width=16).to("cuda:1").eval()
    temperature = torch.tensor(2.0)
    batch = next(iter(_loader()))
    ids, mask = batch["ids"].cuda(0), batch["mask"].cuda(0)
    with torch.no_grad():
        target = teacher(ids.to("cuda:1"), mask.to("cuda:1")).div(temperature).softmax(-1)
    logits = student(ids, mask) / temperature
    loss = F.kl_div(logits.log_softmax(-1), target, reduction="batchmean") * temperature ** 2  # raises
    loss.backward()
