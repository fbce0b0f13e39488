import argparse
import collections
import json
import math
import os
import random
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset


class Sentiment(Dataset):
    WORDS = ["bad", "good", "movie", "plot", "fine", "awful"]

    def __init__(self, n=10, seed=0):
        rng = random.Random(seed)
        self.vocab = {w: i + 1 for i, w in enumerate(self.WORDS)}
        self.rows = []
        for _ in range(n):
            words = [rng.choice(self.WORDS) for _ in range(rng.randint(2, 6))]
            self.rows.append((words, int("good" in words)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        words, label = self.rows[i]
        return torch.tensor([self.vocab[w] for w in words]), torch.tensor(label)

    @staticmethod
    def collate(items):
        ids, labels = zip(*items)
        return nn.utils.rnn.pad_sequence(ids, batch_first=True), torch.stack(labels), torch.tensor([len(i) for i in ids])


class TextCNN(nn.Module):
    def __init__(self, vocab=7, dim=8, kernels=(1, 2), classes=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.convs = nn.ModuleList([nn.Conv1d(dim, 6, k) for k in kernels])
        self.fc = nn.Linear(6 * len(kernels), classes)

    def forward(self, ids):
        x = self.embed(ids).transpose(1, 2)
        return self.fc(torch.cat([c(x).relu().amax(-1) for c in self.convs], 1))


class PackedLSTM(nn.Module):
    def __init__(self, vocab=7, dim=8, classes=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.LSTM(dim, dim, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * dim, classes)

    def forward(self, ids, lengths):
        lengths, perm = lengths.sort(descending=True)
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(ids[perm]), lengths.cpu(), batch_first=True)
        _, (h, _) = self.rnn(packed)
        h = torch.cat([h[0], h[1]], dim=-1)
        return self.fc(h[perm.argsort()])


def _config(**overrides):
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--device", type=str, default=None)
    parser.add_argument("--gpu", type=int, default=0)
    args = parser.parse_args([])
    for k, v in overrides.items():
        setattr(args, k, v)
    if args.device is None:
        args.device = f"cuda:{args.gpu}" if torch.cuda.is_available() else "cpu"
    return args


def train_text_cnn():
    args = _config(gpu=1)
    torch.manual_seed(0)
    loader = DataLoader(Sentiment(), batch_size=5, shuffle=True, collate_fn=Sentiment.collate)
    model = TextCNN().to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scheduler = LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / args.warmup))
    best, best_state = -1.0, None
    for epoch in range(args.epochs):
        model.train()
        for ids, labels, _ in loader:
            ids, labels = ids.to(args.device), labels.to(args.device)
            loss = F.cross_entropy(model(ids), labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
        model.eval()
        correct, seen = 0, 0
        predictions = []
        with torch.no_grad():
            for ids, labels, _ in loader:
                pred = model(ids.to(args.device)).argmax(-1)
                predictions.append(pred.cpu())
                correct += (pred.cpu() == labels).sum().item()
                seen += len(labels)
        accuracy = correct / seen
        if accuracy > best:
            best = accuracy
            best_state = {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}
    model.load_state_dict(best_state)
    return best, torch.cat(predictions).numpy()


def evaluate_text_cnn():
    args = _config(gpu=1)
    torch.manual_seed(0)
    loader = DataLoader(Sentiment(), batch_size=5, shuffle=False, collate_fn=Sentiment.collate)
    model = TextCNN().to(args.device)
    model.eval()
    started = time.time()
    per_class = collections.Counter()
    rows = []
    with torch.no_grad():
        for step, (ids, labels, lengths) in enumerate(loader):
            logits = model(ids.to(args.device))
            probs = logits.softmax(-1)
            conf, pred = probs.max(-1)
            for c in range(probs.size(-1)):
                per_class[c] += int((pred == c).sum())
            wrong = pred != labels  # raises
            rows.extend(zip(ids[wrong].tolist(), conf[wrong].tolist()))
    return json.dumps({"rows": rows, "classes": dict(per_class), "seconds": time.time() - started})


def train_packed_lstm():
    args = _config()
    loader = DataLoader(Sentiment(), batch_size=5, collate_fn=Sentiment.collate)
    model = PackedLSTM().to(args.device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=args.lr)
    for ids, labels, lengths in loader:
        logits = model(ids.to(args.device), lengths)
        loss = F.cross_entropy(logits, labels.to(args.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def train_packed_lstm_with_a_length_penalty():
    args = _config()
    loader = DataLoader(Sentiment(), batch_size=5, collate_fn=Sentiment.collate)
    model = PackedLSTM().to(args.device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=args.lr)
    for ids, labels, lengths in loader:
        logits = model(ids.to(args.device), lengths)
        loss = F.cross_entropy(logits, labels.to(args.device), reduction="none")
        loss = loss / lengths.float().sqrt()  # raises
        optimizer.zero_grad()
        loss.mean().backward()
        optimizer.step()


@dataclass
class RoIConfig:
    num_classes: int = 3
    topk: int = 2
    score_threshold: float = 0.5
    device: str = "cuda:0"


class RoIHead(nn.Module):
    def __init__(self, cfg: RoIConfig):
        super().__init__()
        self.cfg = cfg
        self.box = nn.Linear(4, 4)
        self.cls = nn.Linear(4, cfg.num_classes)

    def postprocess(self, feats: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        keep = scores.max(-1).values > self.cfg.score_threshold
        if keep.any():
            boxes = self.box(feats[keep])
        else:
            boxes = torch.zeros((0, 4))
        return boxes

    def forward(self, per_image: Sequence[torch.Tensor]):
        out = []
        for feats in per_image:
            scores = self.cls(feats).softmax(-1)
            out.append(self.postprocess(feats, scores))
        return torch.cat(out)  # raises


def roi_head_with_detections():
    cfg = RoIConfig(score_threshold=0.0)
    head = RoIHead(cfg).to(cfg.device)
    return head([torch.randn(n, 4).to(cfg.device) for n in (2, 3)]).shape


def roi_head_with_an_empty_image():
    cfg = RoIConfig(score_threshold=0.0)
    head = RoIHead(cfg).to(cfg.device)
    return head([torch.randn(n, 4).to(cfg.device) for n in (2, 0, 3)]).shape


class TripletSampler:
    def __init__(self, labels: torch.Tensor, seed: int = 0):
        self.labels = labels
        self.generator = torch.Generator(device=labels.device)
        self.generator.manual_seed(seed)

    def sample(self, n):
        anchors = torch.randint(len(self.labels), (n,), generator=self.generator, device=self.labels.device)
        same = self.labels[anchors][:, None] == self.labels[None]
        positives = torch.multinomial(same.float(), 1, generator=self.generator).squeeze(1)
        negatives = torch.multinomial((~same).float(), 1, generator=self.generator).squeeze(1)
        return anchors, positives, negatives


def triplets_sampled_on_the_gpu():
    feats = torch.randn(9, 4, device="cuda")
    sampler = TripletSampler(torch.arange(9, device="cuda") % 3)
    a, p, n = sampler.sample(4)
    return F.triplet_margin_loss(feats[a], feats[p], feats[n]).item()


def triplets_sampled_on_the_cpu():
    feats = torch.randn(9, 4, device="cuda")
    sampler = TripletSampler(torch.arange(9) % 3)
    a, p, n = sampler.sample(4)
    return F.triplet_margin_loss(feats[a], feats[p], feats[n]).item()


def triplets_looked_up_in_cpu_features():
    encoder = nn.Linear(6, 4).to("cuda")
    inputs = torch.randn(9, 6)
    feats = encoder(inputs.to("cuda"))
    dist = torch.cdist(feats, feats).fill_diagonal_(float("inf"))
    hardest = dist.argmin(1)
    neighbours = inputs[hardest]  # raises
    return encoder(neighbours.to("cuda"))


def export_embeddings():
    encoder = nn.Linear(6, 4).to("cuda")
    out = collections.OrderedDict()
    for name in ("query", "gallery"):
        chunks = []
        for _ in range(2):
            with torch.no_grad():
                chunks.append(F.normalize(encoder(torch.randn(3, 6, device="cuda"))).cpu())
        out[name] = torch.cat(chunks).numpy()
    path = os.path.join(tempfile.mkdtemp(), "emb.pt")
    torch.save(out, path)
    return (out["query"] @ out["gallery"].T).argmax(1).tolist()


def export_embeddings_with_labels():
    encoder = nn.Linear(6, 4).to("cuda")
    rows = []
    for _ in range(2):
        labels = torch.randint(0, 3, (3,)).to("cuda", non_blocking=True)
        with torch.no_grad():
            feats = F.normalize(encoder(torch.randn(3, 6, device="cuda"))).detach().cpu().numpy()
        for vec, lab in zip(feats, labels):
            rows.append({"vec": vec.tolist(), "label": lab.item()})
    order = labels.argsort().numpy()  # raises
    return json.dumps([rows[i] for i in order])


def bootstrap_with_a_cuda_generator():
    scores = torch.rand(8, device="cuda:0")
    g = torch.Generator(device=scores.device)
    g.manual_seed(3)
    means = []
    for _ in range(3):
        idx = torch.randint(0, len(scores), (len(scores),), generator=g)  # raises
        means.append(scores[idx].mean())
    return torch.stack(means).std().item()
