# Sequence modelling, detection and preference-tuning helpers.
import collections
import logging
import math
from itertools import chain

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

logger = logging.getLogger(__name__)


def make_positions(tensor, padding_idx):
    mask = tensor.ne(padding_idx).int()
    return (torch.cumsum(mask, dim=1).type_as(mask) * mask).long() + padding_idx


def lengths_to_padding_mask(lens):
    bsz, most = lens.size(0), torch.max(lens).item()
    mask = torch.arange(most).to(lens.device).view(1, most)
    return mask.expand(bsz, -1) >= lens.view(bsz, 1).expand(-1, most)


def lengths_to_mask(lens, max_len=None):
    most = max_len or int(lens.max())
    return torch.arange(most)[None] < lens[:, None]  # raises


class SinusoidalPositional(nn.Module):
    def __init__(self, dim, padding_idx, init_size=16):
        super().__init__()
        self.dim, self.padding_idx = dim, padding_idx
        self.weights = self.get_embedding(init_size, dim, padding_idx)
        self.register_buffer("_float_tensor", torch.FloatTensor(1))

    @staticmethod
    def get_embedding(n, dim, padding_idx=None):
        half = dim // 2
        emb = torch.exp(torch.arange(half, dtype=torch.float) * -(math.log(10000) / (half - 1)))
        emb = torch.arange(n, dtype=torch.float).unsqueeze(1) * emb.unsqueeze(0)
        emb = torch.cat([torch.sin(emb), torch.cos(emb)], dim=1).view(n, -1)
        if padding_idx is not None:
            emb[padding_idx, :] = 0
        return emb

    def forward(self, input, incremental_step=None):
        bsz, seq = input.shape
        max_pos = self.padding_idx + 1 + seq
        if self.weights is None or max_pos > self.weights.size(0):
            self.weights = self.get_embedding(max_pos, self.dim, self.padding_idx)
        self.weights = self.weights.to(self._float_tensor)
        if incremental_step is not None:
            return self.weights[self.padding_idx + incremental_step, :].expand(bsz, 1, -1)
        positions = make_positions(input, self.padding_idx)
        return self.weights.index_select(0, positions.view(-1)).view(bsz, seq, -1).detach()


class AlibiAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.slopes = [2 ** (-8 * (i + 1) / heads) for i in range(heads)]

    def forward(self, x, causal=True):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        pos = torch.arange(t)
        bias = torch.tensor(self.slopes)[:, None, None] * (pos[None] - pos[:, None]).clamp(max=0)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
        scores = scores + bias  # raises
        if causal:
            scores = scores.masked_fill(torch.ones(t, t, device=x.device).triu(1).bool(), -1e4)
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c)


class RelativeBias(nn.Module):
    def __init__(self, buckets, heads, max_distance=16):
        super().__init__()
        self.buckets, self.max_distance = buckets, max_distance
        self.embed = nn.Embedding(buckets, heads)

    def _bucket(self, rel):
        n = (-rel).clamp(min=0)
        exact = self.buckets // 2
        large = exact + (torch.log(n.float().clamp(min=1) / exact) / math.log(self.max_distance / exact) * (self.buckets - exact)).long()
        large = torch.min(large, torch.full_like(large, self.buckets - 1))
        return torch.where(n < exact, n, large)

    def forward(self, qlen, klen):
        q = torch.arange(qlen)[:, None]
        k = torch.arange(klen)[None, :]
        bucket = self._bucket(k - q)
        bucket = bucket.to(self.embed.weight.device)
        return self.embed(bucket).permute(2, 0, 1).unsqueeze(0)


class Cache:
    def __init__(self):
        self.keys, self.values = [], []

    def update(self, k, v, layer):
        if len(self.keys) <= layer:
            self.keys.append(k)
            self.values.append(v)
        else:
            self.keys[layer] = torch.cat([self.keys[layer], k], dim=-2)
            self.values[layer] = torch.cat([self.values[layer], v], dim=-2)
        return self.keys[layer], self.values[layer]

    def reorder(self, beam_idx):
        for i in range(len(self.keys)):
            self.keys[i] = self.keys[i].index_select(0, beam_idx.to(self.keys[i].device))
            self.values[i] = self.values[i].index_select(0, beam_idx.to(self.values[i].device))


class StaticCache:
    def __init__(self, batch, heads, max_len, dim, dtype=torch.float32, device=None):
        self.k = torch.zeros(batch, heads, max_len, dim, dtype=dtype, device=device)
        self.v = torch.zeros_like(self.k)
        self.seen = 0

    def update(self, k, v):
        pos = torch.arange(self.seen, self.seen + k.size(-2))
        self.k.index_copy_(2, pos, k)  # raises
        self.v.index_copy_(2, pos, v)
        self.seen += k.size(-2)
        return self.k[:, :, :self.seen], self.v[:, :, :self.seen]


def label_smoothed_nll(lprobs, target, epsilon, ignore_index=None, reduce=True):
    if target.dim() == lprobs.dim() - 1:
        target = target.unsqueeze(-1)
    nll = -lprobs.gather(dim=-1, index=target)
    smooth = -lprobs.sum(dim=-1, keepdim=True)
    if ignore_index is not None:
        pad = target.eq(ignore_index)
        nll.masked_fill_(pad, 0.0)
        smooth.masked_fill_(pad, 0.0)
    if reduce:
        nll, smooth = nll.sum(), smooth.sum()
    eps_i = epsilon / (lprobs.size(-1) - 1)
    return (1.0 - epsilon - eps_i) * nll + eps_i * smooth


def get_batch_logps(logits, labels, label_pad=-100, average=False):
    labels = labels[:, 1:].clone()
    logits = logits[:, :-1]
    mask = labels != label_pad
    labels[~mask] = 0
    per = torch.gather(logits.log_softmax(-1), 2, labels.unsqueeze(2)).squeeze(2)
    return (per * mask).sum(-1) / (mask.sum(-1) if average else 1)


def dpo_loss(policy_chosen, policy_rejected, ref_chosen, ref_rejected, beta=0.1, loss_type="sigmoid", margins=None):
    logits = (policy_chosen - policy_rejected) - (ref_chosen - ref_rejected)
    if loss_type == "sigmoid":
        losses = -F.logsigmoid(beta * logits)
    elif loss_type == "hinge":
        losses = torch.relu(1 - beta * logits)
    elif loss_type == "ipo":
        losses = (logits - 1 / (2 * beta)) ** 2
    else:
        margins = torch.zeros(logits.shape[0]) if margins is None else margins
        losses = -F.logsigmoid(beta * logits - margins)  # raises
    return losses.mean(), beta * (policy_chosen - ref_chosen).detach()


def concatenated_inputs(batch, pad=0):
    most = max(batch["chosen"].shape[1], batch["rejected"].shape[1])

    def pad_to(t):
        if t.shape[1] >= most:
            return t
        fill = torch.full((t.shape[0], most - t.shape[1]), pad, dtype=t.dtype)
        return torch.cat([t, fill], dim=1)  # raises

    return torch.cat([pad_to(batch["chosen"]), pad_to(batch["rejected"])])


def whiten(values, mask=None, shift_mean=True):
    if mask is None:
        mean, var = values.mean(), values.var()
    else:
        mean = (values * mask).sum() / mask.sum()
        var = ((values - mean) ** 2 * mask).sum() / mask.sum()
    out = (values - mean) * torch.rsqrt(var + 1e-8)
    return out if shift_mean else out + mean


def compute_advantages(values, rewards, mask, gamma=1.0, lam=0.95):
    last = 0
    adv = []
    length = rewards.shape[-1]
    values = values * mask
    for t in reversed(range(length)):
        nxt = values[:, t + 1] if t < length - 1 else torch.tensor(0.0)
        last = rewards[:, t] + gamma * nxt - values[:, t] + gamma * lam * last
        adv.append(last)
    adv = torch.stack(adv[::-1], dim=1)
    return whiten(adv, mask).detach(), (adv + values).detach()


def first_true_indices(flags, dtype=torch.long):
    row_len = flags.size(-1)
    zero_or_index = row_len * (~flags).type(dtype) + torch.arange(row_len, dtype=dtype, device=flags.device)
    return torch.min(zero_or_index, dim=-1).values


def truncate_response(stop_token, pad_token, responses):
    cut = first_true_indices(responses == stop_token).unsqueeze(-1)
    idxs = torch.arange(responses.shape[1]).view(*[1] * (responses.dim() - 1), -1)
    return torch.masked_fill(responses, idxs > cut, pad_token)  # raises


class KLController:
    def __init__(self, init=0.2, target=6.0, horizon=100):
        self.value, self.target, self.horizon = init, target, horizon

    def update(self, current, n):
        err = torch.clip(current / self.target - 1, -0.2, 0.2)
        self.value = self.value * (1 + err * n / self.horizon)

    def penalty(self, logp, ref):
        return self.value * (logp - ref)


class RunningMoments:
    def __init__(self):
        self.mean, self.std, self.count = torch.tensor(0.0), torch.tensor(1.0), 1e-24

    @torch.no_grad()
    def update(self, xs):
        n = xs.numel()
        var, mean = torch.var_mean(xs, unbiased=False)
        delta = mean - self.mean
        total = self.count + n
        new_var = (var * n + self.std ** 2 * self.count + delta ** 2 * self.count * n / total) / total
        self.mean = self.mean + delta * n / total
        self.std = new_var.sqrt()
        self.count = total
        return mean.item()


class RunningQuantiles:
    def __init__(self, qs=(0.1, 0.5, 0.9), momentum=0.9):
        self.qs = torch.tensor(qs)
        self.values = None
        self.momentum = momentum

    def update(self, xs):
        now = torch.quantile(xs.flatten(), self.qs)  # raises
        self.values = now if self.values is None else self.momentum * self.values + (1 - self.momentum) * now
        return self.values


# --- detection structures


class Boxes:
    def __init__(self, tensor):
        device = tensor.device if isinstance(tensor, torch.Tensor) else torch.device("cpu")
        tensor = torch.as_tensor(tensor, dtype=torch.float32, device=device)
        self.tensor = tensor.reshape((-1, 4)) if tensor.numel() == 0 else tensor

    def to(self, device):
        return Boxes(self.tensor.to(device=device))

    def area(self):
        return (self.tensor[:, 2] - self.tensor[:, 0]) * (self.tensor[:, 3] - self.tensor[:, 1])

    def clip(self, size):
        h, w = size
        b = self.tensor
        self.tensor = torch.stack((b[:, 0].clamp(0, w), b[:, 1].clamp(0, h), b[:, 2].clamp(0, w), b[:, 3].clamp(0, h)), dim=-1)

    def nonempty(self, threshold=0.0):
        return (self.tensor[:, 2] - self.tensor[:, 0] > threshold) & (self.tensor[:, 3] - self.tensor[:, 1] > threshold)

    def __getitem__(self, item):
        return Boxes(self.tensor[item])

    def __len__(self):
        return self.tensor.shape[0]

    @classmethod
    def cat(cls, many):
        if len(many) == 0:
            return cls(torch.empty(0))
        return cls(torch.cat([b.tensor for b in many], dim=0))

    def scale_to(self, sizes, scales):
        factor = torch.tensor([[sx, sy, sx, sy] for sx, sy in scales])
        which = torch.tensor(sizes)
        self.tensor = self.tensor * factor[which]  # raises


def pairwise_iou(a, b):
    ta, tb = a.tensor, b.tensor
    wh = torch.min(ta[:, None, 2:], tb[:, 2:]) - torch.max(ta[:, None, :2], tb[:, :2])
    inter = wh.clamp_(min=0).prod(dim=2)
    union = a.area()[:, None] + b.area() - inter
    return torch.where(inter > 0, inter / union, torch.zeros(1, dtype=inter.dtype, device=inter.device))


class Matcher:
    def __init__(self, thresholds=(0.3, 0.7), labels=(0, -1, 1)):
        self.thresholds = [-float("inf")] + list(thresholds) + [float("inf")]
        self.labels = labels

    def __call__(self, quality):
        vals, matches = quality.max(dim=0)
        out = matches.new_full(matches.size(), 1, dtype=torch.int8)
        for l, low, high in zip(self.labels, self.thresholds[:-1], self.thresholds[1:]):
            out[(vals >= low) & (vals < high)] = l
        return matches, out


class ImageList:
    def __init__(self, tensor, sizes):
        self.tensor, self.image_sizes = tensor, sizes

    @classmethod
    def from_tensors(cls, tensors, divisor=0, pad_value=0.0):
        sizes = [tuple(t.shape[-2:]) for t in tensors]
        most = torch.stack([torch.as_tensor(s) for s in sizes]).max(0).values
        if divisor > 1:
            most = torch.div(most + (divisor - 1), divisor, rounding_mode="floor") * divisor
        batch = tensors[0].new_full([len(tensors), tensors[0].shape[0]] + most.tolist(), pad_value)
        for img, dst in zip(tensors, batch):
            dst[..., : img.shape[-2], : img.shape[-1]].copy_(img)
        return cls(batch, sizes)

    def masks(self):
        out = torch.ones(self.tensor.shape[0], *self.tensor.shape[-2:], dtype=torch.bool)
        for m, (h, w) in zip(out, self.image_sizes):
            m[:h, :w] = False
        return out


class DetrPositions(nn.Module):
    def __init__(self, feats=4, temperature=10000):
        super().__init__()
        self.feats, self.temperature = feats, temperature

    def forward(self, images):
        not_mask = ~images.masks()
        y = not_mask.cumsum(1, dtype=torch.float32)
        x = not_mask.cumsum(2, dtype=torch.float32)
        dim_t = self.temperature ** (torch.arange(self.feats) / self.feats)
        pos = torch.cat([(y[..., None] / dim_t).sin(), (x[..., None] / dim_t).cos()], dim=-1)
        return images.tensor + pos.mean(-1)[:, None]  # raises


def subsample_labels(labels, num, fraction, bg=0):
    positive = ((labels != -1) & (labels != bg)).nonzero().squeeze(1)
    negative = (labels == bg).nonzero().squeeze(1)
    n_pos = min(positive.numel(), int(num * fraction))
    n_neg = min(negative.numel(), num - n_pos)
    perm1 = torch.randperm(positive.numel(), device=positive.device)[:n_pos]
    perm2 = torch.randperm(negative.numel())[:n_neg]
    return positive[perm1], negative[perm2]


def sigmoid_focal(inputs, targets, num_boxes, alpha=0.25, gamma=2):
    p = inputs.sigmoid()
    ce = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    p_t = p * targets + (1 - p) * (1 - targets)
    loss = ce * (1 - p_t) ** gamma
    if alpha >= 0:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    return loss.mean(1).sum() / num_boxes


class SetCriterion(nn.Module):
    def __init__(self, num_classes, eos_coef=0.1, buffered=True):
        super().__init__()
        self.num_classes = num_classes
        weight = torch.ones(num_classes + 1)
        weight[-1] = eos_coef
        if buffered:
            self.register_buffer("empty_weight", weight)
        else:
            self.empty_weight = weight

    def forward(self, logits, indices, labels):
        target = torch.full(logits.shape[:2], self.num_classes, dtype=torch.int64, device=logits.device)
        for b, (src, tgt) in enumerate(indices):
            target[b, src] = labels[b][tgt]
        return F.cross_entropy(logits.transpose(1, 2), target, self.empty_weight)  # raises
