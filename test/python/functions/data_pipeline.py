# coding: utf-8
import random
from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Dict, List

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, IterableDataset, WeightedRandomSampler, random_split
import torch.nn.functional as F


class TextDataset(Dataset):
    def __init__(self, n=6, vocab=10):
        rng = random.Random(0)
        self.samples = [([rng.randrange(1, vocab) for _ in range(rng.randint(2, 5))], rng.randint(0, 1)) for _ in range(n)]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        ids, label = self.samples[i]
        return {"input_ids": torch.tensor(ids), "label": label}


def collate(batch):
    ids = pad_sequence([b["input_ids"] for b in batch], batch_first=True)
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": torch.tensor([b["label"] for b in batch])}


class Classifier(nn.Module):
    def __init__(self, vocab=10, dim=4):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.cls = nn.Linear(dim, 2)

    def forward(self, input_ids, attention_mask, labels=None):
        h = self.emb(input_ids)
        m = attention_mask.unsqueeze(-1)
        pooled = (h * m).sum(1) / m.sum(1).clamp(min=1)  # raises
        logits = self.cls(pooled)
        if labels is None:
            return {"logits": logits}
        return {"logits": logits, "loss": F.cross_entropy(logits, labels)}


def case_dict_batches():
    model = Classifier().to("cuda")
    for batch in DataLoader(TextDataset(), batch_size=3, collate_fn=collate, pin_memory=True):
        batch = {k: v.to("cuda", non_blocking=True) for k, v in batch.items()}
        model(**batch)["loss"].backward()


def case_dict_batches_partly():
    model = Classifier().to("cuda")
    device = next(model.parameters()).device
    for batch in DataLoader(TextDataset(), batch_size=3, collate_fn=collate):
        input_ids, labels = batch["input_ids"].to(device), batch["labels"].to(device)
        out = model(input_ids, attention_mask=batch["attention_mask"], labels=labels)
        out["loss"].backward()


def to_device(obj: Any, device):
    if torch.is_tensor(obj):
        return obj.to(device)
    if isinstance(obj, Mapping):
        return {k: to_device(v, device) for k, v in obj.items()}
    if isinstance(obj, tuple) and hasattr(obj, "_fields"):
        return type(obj)(*(to_device(v, device) for v in obj))
    if isinstance(obj, (list, tuple)):
        return type(obj)(to_device(v, device) for v in obj)
    return obj


Sample = namedtuple("Sample", "image target meta")


def case_nested_move():
    batch = {"img": [torch.randn(2, 3), torch.randn(2, 3)], "t": Sample(torch.ones(2), torch.zeros(2), "x")}
    batch = to_device(batch, torch.device("cuda"))
    model = nn.Linear(3, 2).cuda()
    pred = sum(model(i) for i in batch["img"])
    return F.mse_loss(pred.mean(1), batch["t"].target)


@dataclass
class Batch:
    obs: torch.Tensor
    target: torch.Tensor
    weight: torch.Tensor

    def to(self, device):
        return Batch(self.obs.to(device), self.target.to(device), self.weight.to(device))

    def cuda(self):
        self.obs = self.obs.cuda()
        self.target = self.target.cuda()
        return self


def make_batch(n=4):
    return Batch(torch.randn(n, 3), torch.randn(n, 2), torch.ones(n, 1))


def weighted_mse(model, batch):
    err = (model(batch.obs) - batch.target) ** 2
    return (batch.weight * err).mean()  # raises


def case_batch_object_to():
    model = nn.Linear(3, 2).to("cuda")
    batch = make_batch().to("cuda")
    weighted_mse(model, batch).backward()


def case_batch_object_cuda():
    model = nn.Linear(3, 2).cuda()
    batch = make_batch().cuda()
    weighted_mse(model, batch).backward()


def case_batch_object_to_dropped():
    model = nn.Linear(3, 2).to("cuda")
    for _ in range(2):
        batch = make_batch()
        batch.to("cuda")
        out = model(batch.obs)  # raises
        (out - batch.target).abs().mean().backward()


class NormalizeTransform:
    def __init__(self, mean, std):
        self.mean = torch.as_tensor(mean)[:, None, None]
        self.std = torch.as_tensor(std)[:, None, None]

    def __call__(self, x):
        return (x - self.mean) / self.std  # raises


class Images(Dataset):
    def __init__(self, transform=None):
        self.data = np.random.rand(6, 3, 4, 4).astype(np.float32)
        self.transform = transform

    def __getitem__(self, idx):
        x = torch.from_numpy(self.data[idx])
        if self.transform:
            x = self.transform(x)
        return x, int(idx % 2)

    def __len__(self):
        return len(self.data)


def case_normalise_in_dataset():
    norm = NormalizeTransform([0.5, 0.4, 0.3], [0.2, 0.2, 0.2])
    net = nn.Conv2d(3, 2, 3).cuda()
    for x, y in DataLoader(Images(norm), batch_size=2, shuffle=True):
        net(x.cuda()).mean((2, 3)).gather(1, y.cuda().view(-1, 1))


def case_normalise_on_gpu():
    norm = NormalizeTransform([0.5, 0.4, 0.3], [0.2, 0.2, 0.2])
    net = nn.Conv2d(3, 2, 3).cuda()
    for x, y in DataLoader(Images(), batch_size=2, shuffle=True):
        net(norm(x.cuda()))


def case_weighted_sampler():
    ds = Images()
    labels = torch.tensor([y for _, y in ds])
    counts = torch.bincount(labels)
    sampler = WeightedRandomSampler((1.0 / counts.float())[labels], len(ds))
    loss_fn = nn.CrossEntropyLoss(weight=(1.0 / counts.float()).to("cuda"))
    net = nn.Sequential(nn.Flatten(), nn.Linear(48, 2)).to("cuda")
    for x, y in DataLoader(ds, batch_size=2, sampler=sampler):
        loss_fn(net(x.to("cuda")), y.to("cuda")).backward()


def case_split_with_device_generator():
    gen = torch.Generator(device="cuda")
    gen.manual_seed(3407)
    train, val = random_split(Images(), [4, 2], generator=gen)  # raises
    return len(train), len(val)


def case_split_with_seed():
    g = torch.Generator()
    g.manual_seed(0)
    train, val = random_split(Images(), [4, 2], generator=g)
    loader = DataLoader(train, shuffle=True, generator=g, worker_init_fn=lambda i: np.random.seed(i))
    xs = torch.cat([x for x, _ in loader]).to("cuda", non_blocking=True)
    return xs.std()


def case_default_cuda_tensors():
    torch.set_default_tensor_type(torch.cuda.FloatTensor)
    net = nn.Linear(3, 1)
    data = torch.randn(6, 3)
    loader = DataLoader(torch.utils.data.TensorDataset(data), batch_size=2, shuffle=True)
    for (x,) in loader:  # raises
        net(x)


def case_default_cuda_tensors_in_order():
    torch.set_default_tensor_type(torch.cuda.FloatTensor)
    net = nn.Linear(3, 1)
    for (x,) in DataLoader(torch.utils.data.TensorDataset(torch.randn(6, 3)), batch_size=2):
        y = net(x) + torch.zeros(2, 1)
    assert y.is_cuda


class Stream(IterableDataset):
    def __init__(self, extractor):
        self.extractor = extractor

    def __iter__(self):
        for _ in range(4):
            with torch.no_grad():
                yield self.extractor(torch.randn(3))


def case_features_from_cpu_extractor():
    extractor, head = nn.Linear(3, 2), nn.Linear(2, 1).cuda()
    for feats in DataLoader(Stream(extractor), batch_size=2):
        head(feats.cuda())


def case_prefetcher():
    class CUDAPrefetcher:
        def __init__(self, loader):
            self.loader = iter(loader)
            self.stream = torch.cuda.Stream()
            self.preload()

        def preload(self):
            try:
                self.next_x, self.next_y = next(self.loader)
            except StopIteration:
                self.next_x = None
                return
            with torch.cuda.stream(self.stream):
                self.next_x = self.next_x.cuda(non_blocking=True)

        def next(self):
            torch.cuda.current_stream().wait_stream(self.stream)
            x, y = self.next_x, getattr(self, "next_y", None)
            if x is not None:
                self.preload()
            return x, y

    net = nn.Sequential(nn.Flatten(), nn.Linear(48, 2)).cuda()
    prefetcher = CUDAPrefetcher(DataLoader(Images(), batch_size=3))
    x, y = prefetcher.next()
    while x is not None:
        loss = F.cross_entropy(net(x), y)  # raises
        loss.backward()
        x, y = prefetcher.next()


def plot_grid(images: List[np.ndarray], cols=2) -> np.ndarray:
    rows = [np.concatenate(images[i:i + cols], axis=1) for i in range(0, len(images), cols)]
    return np.concatenate(rows, axis=0)


def case_visualise():
    decoder = nn.Sequential(nn.Linear(2, 16), nn.Sigmoid(), nn.Unflatten(1, (4, 4))).cuda()
    with torch.no_grad():
        imgs = decoder(torch.randn(4, 2).cuda())
    return plot_grid([np.asarray(img) for img in imgs])  # raises


def case_visualise_detached():
    decoder = nn.Sequential(nn.Linear(2, 16), nn.Sigmoid(), nn.Unflatten(1, (4, 4))).cuda()
    imgs = decoder(torch.randn(4, 2).cuda())
    grid = plot_grid([img.detach().cpu().numpy() for img in imgs])
    return torch.from_numpy(grid).mean() + torch.tensor(imgs[0, 0, 0].item())


def case_class_stats() -> Dict[int, float]:
    feats = torch.randn(6, 3, device="cuda")
    labels = np.array([0, 1, 1, 0, 2, 2])
    centers = {}
    for c in np.unique(labels):
        idx = np.where(labels == c)[0]
        centers[int(c)] = feats[torch.from_numpy(idx)].mean(0)
    pick = partial(torch.index_select, feats, 0)
    stacked = torch.stack([centers[k] for k in sorted(centers)])
    spread = pick(torch.as_tensor(np.flatnonzero(labels == 2)))  # raises
    return stacked, spread
