import random
from collections import OrderedDict
from itertools import islice

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import IterableDataset, DataLoader


def cudafy(*ts, dev="cuda"):
  return tuple(t.to(dev) for t in ts)


class FeaturesLinear(nn.Module):
  def __init__(self, field_dims, out=1):
    super().__init__()
    self.fc = nn.Embedding(sum(field_dims), out)
    self.bias = nn.Parameter(torch.zeros((out,)))
    self.offsets = np.array((0, *np.cumsum(field_dims)[:-1]), dtype=np.int64)

  def forward(self, x):
    x = x + x.new_tensor(self.offsets).unsqueeze(0)
    return self.fc(x).sum(1) + self.bias


class FieldEmbedding(nn.Module):
  def __init__(self, field_dims, k):
    super().__init__()
    self.embedding = nn.Embedding(sum(field_dims), k)
    self.offsets = torch.tensor((0, *np.cumsum(field_dims)[:-1]))

  def forward(self, x):
    x = x + self.offsets.unsqueeze(0)  # raises
    return self.embedding(x)


class FM(nn.Module):
  def __init__(self, dims, k=4):
    super().__init__()
    self.linear, self.dims = FeaturesLinear(dims), dims
    self.emb = nn.Embedding(sum(dims), k)
    self.row, self.col = [], []
    for i in range(len(dims) - 1):
      for j in range(i + 1, len(dims)):
        self.row.append(i), self.col.append(j)

  def forward(self, x):
    off = torch.from_numpy(self.linear.offsets).to(x.device)
    e = self.emb(x + off)
    inter = (e[:, self.row] * e[:, self.col]).sum(2)
    return torch.sigmoid(self.linear(x).squeeze(1) + inter.sum(1))


class MF(nn.Module):
  def __init__(self, n_users, n_items, k=4, init=None):
    super().__init__()
    self.U, self.I = nn.Embedding(n_users, k), nn.Embedding(n_items, k)
    self.b = nn.ParameterDict({"u": nn.Parameter(torch.zeros(n_users)), "i": nn.Parameter(torch.zeros(n_items))})
    if init:
      self.load_state_dict(init, strict=False)

  def score(self, u, i):
    return (self.U(u) * self.I(i)).sum(-1) + self.b["u"][u] + self.b["i"][i]

  def full(self, u):
    return self.U(u) @ self.I.weight.T + self.b["i"]

  @torch.no_grad()
  def recommend(self, users, seen, k=3):
    s = self.full(users)
    for row, items in zip(s, seen):
      row[items] = -np.inf
    return s.topk(k).indices


class SASRec(nn.Module):
  def __init__(self, n_items, dev, maxlen=6, k=4):
    super().__init__()
    self.dev = dev
    self.item = nn.Embedding(n_items + 1, k, padding_idx=0)
    self.pos = nn.Embedding(maxlen, k)
    self.attn = nn.MultiheadAttention(k, 1)

  def log2feats(self, log_seqs):
    seqs = self.item(torch.LongTensor(log_seqs).to(self.dev))
    positions = np.tile(np.array(range(log_seqs.shape[1])), [log_seqs.shape[0], 1])
    seqs = seqs + self.pos(torch.LongTensor(positions).to(self.dev))  # raises
    timeline = torch.BoolTensor(log_seqs == 0).to(seqs.device)
    seqs = seqs * ~timeline.unsqueeze(-1)
    tl = seqs.shape[1]
    mask = ~torch.tril(torch.ones((tl, tl), dtype=torch.bool, device=seqs.device))
    q = seqs.transpose(0, 1)
    return self.attn(q, q, q, attn_mask=mask)[0].transpose(0, 1)


class BPRStream(IterableDataset):
  def __init__(self, pos, n_items):
    self.pos, self.n = pos, n_items

  def __iter__(self):
    rng = random.Random(0)
    while True:
      u = rng.randrange(len(self.pos))
      yield u, rng.choice(self.pos[u]), rng.randrange(self.n)


POS = [[0, 1], [1, 2, 3], [4], [5, 0, 2]]


# clean
def case_bpr_stream():
  model = MF(4, 6)
  model.cuda()
  adam = torch.optim.Adam(model.parameters())
  for batch in islice(DataLoader(BPRStream(POS, 6), batch_size=5), 3):
    u, i, j = cudafy(*batch)
    loss = -F.logsigmoid(model.score(u, i) - model.score(u, j)).mean()
    adam.zero_grad()
    loss.backward()
    adam.step()
  top = model.recommend(torch.arange(4).cuda(), [torch.tensor(p) for p in POS])
  hits = [len(set(t) & set(p)) for t, p in zip(top.tolist(), POS)]
  return sum(hits) / len(hits)


# broken
def case_recommend_host_users():
  model = MF(4, 6).cuda()
  users = torch.arange(4)
  ndcg = []
  items = torch.arange(6, device="cuda")
  with torch.no_grad():
    all_scores = model.score(users.cuda().unsqueeze(1), items)
  for lo in range(0, 4, 2):
    chunk = users[lo:lo + 2]
    s = all_scores[chunk]                       # plain indexing: host indices do
    rank = s.argsort(dim=1, descending=True)
    rel = torch.zeros_like(s)
    for r, u in enumerate(chunk.tolist()):
      rel[r, POS[u]] = 1
    disc = 1 / torch.log2(torch.arange(2, 8).float())
    ndcg.append((rel.gather(1, rank) * disc).sum(1))  # raises
  return torch.cat(ndcg).mean()


# broken
def case_field_offsets():
  dims = [3, 4, 2]
  x = torch.stack([torch.randint(d, (5,)) for d in dims], 1)
  emb = FieldEmbedding(dims, 4)
  host = emb(x)
  y = torch.bernoulli(torch.full((5,), .5))
  fm, emb = FM(dims).cuda(), emb.cuda()
  x, y = cudafy(x, y)
  F.binary_cross_entropy(fm(x), y).backward()
  return emb(x).sum() + host.sum().item()


# clean
def case_fm_with_numpy_offsets():
  dims = np.array([3, 4, 2])
  fm = FM([int(d) for d in dims]).cuda()
  opt = torch.optim.Adam(fm.parameters(), lr=.01, weight_decay=1e-5)
  targets, predicts = list(), list()
  for _ in range(3):
    x = torch.from_numpy(np.random.randint(0, dims, (6, 3)))
    fields, target = x.cuda(), torch.rand(6).round().cuda()
    p = fm(fields)
    opt.zero_grad()
    F.binary_cross_entropy(p, target).backward()
    opt.step()
    targets.extend(target.tolist())
    predicts.extend(p.tolist())
  auc = np.mean([a > b for a, t in zip(predicts, targets) for b, s in zip(predicts, targets) if t > s] or [0])
  return auc


# broken
def case_sasrec_wrong_gpu():
  # the model object carries its own idea of the device
  net = SASRec(7, dev="cuda:0")
  net.item.to("cuda:0"), net.attn.to("cuda:0")
  net.pos = net.pos.to("cuda:1")
  seqs = np.array([[0, 0, 1, 2, 3, 4], [0, 5, 6, 7, 1, 2]])
  return net.log2feats(seqs)


# clean
def case_sasrec_and_two_tower():
  net = SASRec(7, dev="cuda:1").to("cuda:1")
  seqs = np.array([[0, 0, 1, 2, 3, 4], [0, 5, 6, 7, 1, 2]])
  feats = net.log2feats(seqs)
  cand = net.item.weight[1:]
  logits = feats[:, -1] @ cand.T
  rank = (-logits).argsort(dim=1).argsort(dim=1)[torch.arange(2), torch.tensor([2, 0])]
  towers = nn.ModuleDict(OrderedDict(user=nn.EmbeddingBag(5, 4, mode="sum"), item=nn.EmbeddingBag(7, 4, mode="mean")))
  towers = towers.to("cuda:0")
  with torch.cuda.device(0):
    bag = torch.tensor([0, 1, 2, 3]).cuda()
    off = torch.tensor([0, 2]).cuda()
    u, i = towers["user"](bag, off), towers["item"](bag, offsets=off)
  logq = torch.tensor([.3, .7]).log()
  in_batch = u @ i.T - logq.to(u.device)
  loss = F.cross_entropy(in_batch, torch.arange(2, device=in_batch.device))
  return loss.item(), rank.cpu().numpy().mean()
