"""Losses, miners and retrieval metrics."""
import collections
import math
from functools import wraps

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def same_device(fn):
    """decorator: moves the labels (and a reference set) to the embeddings"""
    @wraps(fn)
    def inner(emb, labels, *args, **kwargs):
        labels = labels.to(emb.device)
        args = [a.to(emb.device) if torch.is_tensor(a) else a for a in args]
        return fn(emb, labels, *args, **kwargs)
    return inner


def pairwise(emb):
    d = emb.pow(2).sum(1)
    return (d[:, None] + d[None] - 2 * emb @ emb.t()).clamp_min(0)


@same_device
def batch_hard(emb, labels, margin=.2):
    dist = pairwise(emb)
    eq = labels[:, None] == labels[None]
    pos = dist.masked_fill(~eq, -1.).max(1).values
    neg = dist.masked_fill(eq, float("inf")).min(1).values
    return F.relu(pos - neg + margin).mean()


def batch_all(emb, labels, margin=.2):
    dist = pairwise(emb)
    n = labels.size(0)
    eye = torch.eye(n, dtype=torch.bool)
    eq = (labels[:, None] == labels[None]) & ~eye  # raises
    loss = dist[:, :, None] - dist[:, None, :] + margin
    mask = eq[:, :, None] & ~(labels[:, None] == labels[None])[:, None, :]
    return (F.relu(loss) * mask).sum() / mask.sum().clamp(min=1)


class ArcFace(nn.Module):
    def __init__(self, dim, classes, s=16., m=.3):
        super().__init__()
        self.W = nn.Parameter(torch.empty(dim, classes))
        nn.init.xavier_uniform_(self.W)
        self.s, self.m = s, m

    def get_target_mask(self, labels, n):
        mask = torch.zeros(n, self.W.size(1), dtype=self.W.dtype)
        mask[torch.arange(n), labels] = 1
        return mask

    def forward(self, emb, labels, mask=None):
        cos = F.normalize(emb) @ F.normalize(self.W, dim=0)
        theta = cos.clamp(-1 + 1e-6, 1 - 1e-6).acos()
        if mask is None:
            mask = self.get_target_mask(labels.cpu(), emb.size(0))
        logits = torch.cos(theta + self.m * mask) * self.s  # raises
        return F.cross_entropy(logits, labels)


class CrossBatchMemory(nn.Module):
    def __init__(self, dim, size=8):
        super().__init__()
        self.size, self.ptr, self.full = size, 0, False
        self.embedding_memory = torch.zeros(size, dim)
        self.label_memory = torch.zeros(size).long()

    def forward(self, emb, labels):
        self.embedding_memory = self.embedding_memory.to(emb)
        self.label_memory = self.label_memory.to(labels.device)
        idx = torch.arange(self.ptr, self.ptr + emb.size(0)) % self.size
        self.embedding_memory[idx], self.label_memory[idx] = emb.detach(), labels
        self.full |= self.ptr + emb.size(0) >= self.size
        self.ptr = (self.ptr + emb.size(0)) % self.size
        E, L = (self.embedding_memory, self.label_memory) if self.full else (self.embedding_memory[:self.ptr], self.label_memory[:self.ptr])
        sim = emb @ E.t() / .1
        pos = (labels[:, None] == L[None]).float()
        return -((sim.log_softmax(1) * pos).sum(1) / pos.sum(1)).mean()


class MoCo(nn.Module):
    def __init__(self, dim=4, K=6):
        super().__init__()
        self.q, self.k = nn.Linear(5, dim), nn.Linear(5, dim)
        self.k.load_state_dict(self.q.state_dict())
        for p in self.k.parameters():
            p.requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0))
        self.register_buffer("ptr", torch.zeros(1, dtype=torch.long))
        self.views = [self.queue]          # an alias taken before .cuda()

    @torch.no_grad()
    def _enqueue(self, keys):
        p = int(self.ptr)
        self.queue[:, p:p + keys.size(0)] = keys.T
        self.ptr[0] = (p + keys.size(0)) % self.queue.size(1)

    def forward(self, im_q, im_k, use_alias=False):
        q = F.normalize(self.q(im_q), dim=1)
        with torch.no_grad():
            for a, b in zip(self.q.parameters(), self.k.parameters()):
                b.data = b.data * .99 + a.data * .01
            k = F.normalize(self.k(im_k), dim=1)
        queue = self.views[0] if use_alias else self.queue.clone().detach()
        l_neg = torch.einsum("nc,ck->nk", q, queue)  # raises
        logits = torch.cat([(q * k).sum(1, keepdim=True), l_neg], 1) / .07
        labels = torch.zeros(logits.shape[0], dtype=torch.long).cuda()
        self._enqueue(k)
        return logits, labels


# clean
def case_batch_hard_host_labels():
    net = nn.Sequential(nn.Linear(5, 4), nn.Tanh()).cuda()
    xb = torch.randn(8, 5)
    yb = torch.arange(8) // 2
    opt = torch.optim.Adagrad(net.parameters(), lr=.1)
    for _ in range(2):
        loss = batch_hard(net(xb.cuda()), yb, margin=.5)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


# broken
def case_batch_all_eye():
    net = nn.Linear(5, 4).cuda()
    emb = net(torch.randn(6, 5, device="cuda"))
    labels = torch.tensor([0, 0, 1, 1, 2, 2]).cuda()
    return batch_hard(emb, labels) + batch_all(emb, labels)


# broken
def case_arcface_mask():
    head = ArcFace(4, 3)
    head.cuda()
    loader = [(torch.randn(4, 4), torch.tensor([0, 1, 2, 0]))]
    for emb, lab in loader:
        emb, lab = emb.cuda(), lab.cuda()
        given = F.one_hot(lab, 3).float()
        warm = head(emb, lab, given)
        loss = head(emb, lab)
        (warm + loss).backward()


# clean
def case_memory_bank_lazily_moved():
    bank = CrossBatchMemory(4)
    enc = nn.Linear(5, 4)
    bank(enc(torch.randn(3, 5)), torch.tensor([0, 1, 0]))       # first a host batch
    enc.to("cuda:0")
    tot = 0.
    for i in range(3):
        lab = torch.randint(0, 2, (4,), device="cuda:0")
        tot += bank(enc(torch.randn(4, 5, device="cuda:0")), lab)
    return float(tot)


# broken
def case_moco_buffer_alias():
    model = MoCo().cuda()
    a, b = torch.randn(2, 3, 5, device="cuda").unbind(0)
    logits, labels = model(a, b)
    F.cross_entropy(logits, labels).backward()
    return model(a, b, use_alias=True)[0].mean()


# clean
def case_recall_at_k():
    g = torch.Generator().manual_seed(5)
    emb = torch.randn(9, 4, generator=g)
    lab = torch.randint(3, (9,), generator=g)
    gal = F.normalize(emb, dim=1).cuda()
    hits = collections.defaultdict(list)
    for q_emb, q_lab in zip(gal.split(4), lab.split(4)):
        sim = q_emb @ gal.T
        top = sim.topk(4, dim=1).indices[:, 1:]
        got = lab[top.cpu()]
        also = lab.cuda()[top].cpu()
        assert torch.equal(got, also)
        for k in (1, 3):
            hits[k].append((got[:, :k] == q_lab[:, None]).any(1).float())
    model = MoCo().to("cuda")
    for _ in range(2):
        model(gal[:2, :1].expand(2, 5), gal[2:4, :1].expand(2, 5))
    rec = {k: torch.cat(v).mean().item() for k, v in hits.items()}
    dcg = np.array([1 / math.log2(i + 2) for i in range(4)])
    return rec, (sim.sort(1, descending=True).values[:, :4].cpu().numpy() * dcg).sum()
