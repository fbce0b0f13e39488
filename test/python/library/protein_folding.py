"""A small folding trunk: embeddings, pair stack, structure module, losses and utilities."""
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Dict, NamedTuple, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

RESTYPES = "ARNDCQEGHILKMFPSTWYV"
ATOM_COUNTS = np.array([5, 11, 8, 8, 6, 9, 9, 4, 10, 8, 8, 9, 8, 11, 7, 6, 7, 14, 12, 7], dtype=np.int64)
IDEAL_BACKBONE = np.array([[-0.525, 1.363, 0.0], [0.0, 0.0, 0.0], [1.526, 0.0, 0.0]], dtype=np.float32)


@dataclass(frozen=True)
class FoldConfig:
    single: int = 16
    pair: int = 8
    blocks: int = 2
    bins: int = 10
    clip: int = 4
    recycles: int = 2
    chunk: int = 2


def tensor_tree_map(function, tree):
    """Applies a function to each tensor of nested dicts and sequences."""
    if isinstance(tree, dict):
        return {key: tensor_tree_map(function, value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(tensor_tree_map(function, value) for value in tree)
    return function(tree) if isinstance(tree, torch.Tensor) else tree


class FeaturePipeline:
    """Sequence in, features out; where they go is said once."""

    def __init__(self, device=None, max_msa=3):
        self.device = device
        self.max_msa = max_msa

    def sequence(self, text):
        return torch.tensor([RESTYPES.index(letter) for letter in text])

    def sample_msa(self, aatype, generator=None):
        rows = aatype.repeat(self.max_msa, 1)
        noise = torch.rand(rows.shape, generator=generator) < 0.3
        rows[noise] = torch.randint(0, 20, (int(noise.sum()),), generator=generator)
        return rows

    def build(self, text):
        aatype = self.sequence(text)
        features = {
            "aatype": aatype,
            "residue_index": torch.arange(len(text)),
            "msa": self.sample_msa(aatype, torch.Generator().manual_seed(1)),
            "mask": torch.ones(len(text)),
            "name": text,
        }
        return tensor_tree_map(lambda t: t.to(self.device), features) if self.device else features


class RelativePosition(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.clip = config.clip
        self.embedding = nn.Linear(2 * config.clip + 1, config.pair)
        self.edges = torch.arange(-config.clip, config.clip + 1)

    def offsets(self, index):
        return (index[:, None] - index[None, :]).clamp(-self.clip, self.clip)

    def forward(self, index):
        classes = self.offsets(index) + self.clip
        return self.embedding(F.one_hot(classes, len(self.edges)).float())

    def hard(self, index):
        hot = self.offsets(index).unsqueeze(-1) == self.edges  # raises
        return self.embedding(hot.float())


class TriangleMultiplication(nn.Module):
    def __init__(self, width, outgoing=True):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.left, self.right = nn.Linear(width, width), nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        self.equation = "ikc,jkc->ijc" if outgoing else "kic,kjc->ijc"

    def forward(self, pair, mask):
        normed = self.norm(pair)
        left = self.left(normed) * mask[..., None]
        right = self.right(normed) * mask[..., None]
        return torch.sigmoid(self.gate(normed)) * torch.einsum(self.equation, left, right)


class ChunkedTransition(nn.Module):
    """Feeds slices of rows and writes them to a buffer."""

    def __init__(self, width, chunk, offload=False):
        super().__init__()
        self.chunk, self.offload = chunk, offload
        self.layers = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))

    def forward(self, pair):
        output = torch.empty(pair.shape, device="cpu" if self.offload else pair.device)
        for start in range(0, pair.size(0), self.chunk):
            output[start:start + self.chunk] = self.layers(pair[start:start + self.chunk])
        return output

    def residual(self, pair):
        return pair + self(pair)  # raises


class PairBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.outgoing = TriangleMultiplication(config.pair)
        self.incoming = TriangleMultiplication(config.pair, outgoing=False)
        self.transition = ChunkedTransition(config.pair, config.chunk)

    def forward(self, pair, mask):
        pair = pair + self.outgoing(pair, mask)
        pair = pair + self.incoming(pair, mask)
        return self.transition(pair).add_(pair)


class PairStack(nn.ModuleList):
    """Blocks, one after another."""

    def __init__(self, config):
        super().__init__(PairBlock(config) for _ in range(config.blocks))

    def pipeline(self, first=0):
        for number, block in enumerate(self):
            block.to(f"cuda:{first + number}")
        return self

    def forward(self, pair, mask):
        home = pair.device
        for block in self:
            place = next(block.parameters()).device
            pair = block(pair.to(place), mask.to(place))
        return pair.to(home)

    def intermediates(self, pair, mask):
        kept = []
        for block in self:
            place = next(block.parameters()).device
            pair = block(pair.to(place), mask.to(place))
            kept.append(pair.detach())
        return kept

    def drift(self, pair, mask):
        kept = self.intermediates(pair, mask)
        return [float(torch.dist(before, after)) for before, after in zip(kept, kept[1:])]  # raises


class Rigid(NamedTuple):
    """Rotations and translations of residues."""
    rotation: torch.Tensor
    translation: torch.Tensor

    @classmethod
    def identity(cls, count, device="cpu"):
        return cls(torch.eye(3, device=device).expand(count, 3, 3), torch.zeros(count, 3, device=device))

    @classmethod
    def from_points(cls, nitrogen, alpha, carbon):
        first = F.normalize(carbon - alpha, dim=-1)
        second = nitrogen - alpha
        second = F.normalize(second - (first * second).sum(-1, keepdim=True) * first, dim=-1)
        return cls(torch.stack([first, second, torch.cross(first, second, dim=-1)], -1), alpha)

    def apply(self, points):
        return torch.einsum("nij,n...j->n...i", self.rotation, points) + self.translation.unsqueeze(1)

    def invert_apply(self, points):
        moved = points.unsqueeze(0) - self.translation.unsqueeze(1)
        return torch.einsum("nji,nkj->nki", self.rotation, moved)

    def compose(self, other):
        turned = torch.einsum("nij,nj->ni", self.rotation, other.translation)  # raises
        return Rigid(self.rotation @ other.rotation, turned + self.translation)

    def to(self, device):
        return Rigid(*(each.to(device) for each in self))


def quaternion_to_matrix(vector):
    """Matrix of (1, b, c, d) by the outer product with a constant table."""
    table = np.zeros((4, 4, 3, 3), dtype=np.float32)
    table[0, 0] = table[1, 1] = np.eye(3)
    table[1, 2, 0, 1] = table[1, 3, 0, 2] = 2.0
    full = F.normalize(F.pad(vector, (1, 0), value=1.0), dim=-1)
    return torch.einsum("na,nb,abij->nij", full, full, vector.new_tensor(table))


class InvariantPointAttention(nn.Module):
    def __init__(self, config, points=2):
        super().__init__()
        self.query, self.key = nn.Linear(config.single, 3 * points), nn.Linear(config.single, 3 * points)
        self.value = nn.Linear(config.single, config.single)
        self.bias = nn.Linear(config.pair, 1)
        self.points = points
        self.scale = torch.tensor(math.sqrt(1.0 / (4.5 * points)))
        self.head_weights = nn.Parameter(torch.zeros(1))

    def forward(self, single, pair, rigid, mask):
        query = rigid.apply(self.query(single).view(-1, self.points, 3))
        key = rigid.apply(self.key(single).view(-1, self.points, 3))
        distance = (query[:, None] - key[None]).pow(2).sum((-1, -2))
        logits = self.bias(pair).squeeze(-1) - F.softplus(self.head_weights) * self.scale * distance
        logits = logits.masked_fill(mask[None] < 0.5, -1e5)
        return logits.softmax(-1) @ self.value(single)


class StructureModule(nn.Module):
    """Iterates frames from a starting guess."""

    def __init__(self, config):
        super().__init__()
        self.attention = InvariantPointAttention(config)
        self.update = nn.Linear(config.single, 6)
        self.start: Optional[Rigid] = None
        self.ideal = torch.from_numpy(IDEAL_BACKBONE)

    def guess(self, count, device):
        return self.start if self.start is not None else Rigid.identity(count, device)

    def forward(self, single, pair, mask, steps=2):
        rigid = self.guess(single.size(0), single.device)
        for _ in range(steps):
            single = single + self.attention(single, pair, rigid, mask)
            change, shift = self.update(single).split(3, dim=-1)
            rigid = rigid.compose(Rigid(quaternion_to_matrix(change), shift))
            rigid = Rigid(rigid.rotation.detach(), rigid.translation)
        return single, rigid

    def remember(self, rigid):
        self.start = Rigid(*(each.detach().cpu() for each in rigid))

    def warm_forward(self, single, pair, mask):
        self.start = self.start.to(single.device)
        return self(single, pair, mask)

    def refine_only(self, rigid):
        return self.guess(len(rigid.translation), rigid.rotation.device).compose(rigid)

    def backbone(self, rigid):
        count = rigid.translation.size(0)
        return rigid.apply(self.ideal.to(rigid.translation).expand(count, 3, 3))

    def center_atoms(self, rigid):
        return rigid.translation[:, None] + self.ideal  # raises


@lru_cache(maxsize=None)
def bin_centers(count, low=2.0, high=20.0):
    return torch.linspace(low, high, count)


class DistogramHead(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.logits = nn.Linear(config.pair, config.bins)
        self.register_buffer("boundaries", torch.linspace(2.0, 20.0, config.bins - 1))

    def forward(self, pair):
        logits = self.logits(pair)
        return logits + logits.transpose(0, 1)

    def target(self, positions):
        return torch.bucketize(torch.cdist(positions, positions), self.boundaries)

    def loss(self, pair, positions, mask):
        error = F.cross_entropy(self(pair).flatten(0, 1), self.target(positions).flatten(), reduction="none")
        weight = (mask[:, None] * mask[None]).flatten()
        return (error * weight).sum() / weight.sum().clamp(min=1)

    def expected(self, pair):
        return torch.tensordot(self(pair).softmax(-1), bin_centers(self.logits.out_features), dims=1)  # raises

    def contact_report(self, pair, threshold=8.0):
        near = bin_centers(self.logits.out_features) < threshold
        return self(pair).softmax(-1)[..., near].sum(-1).detach().cpu().numpy()


class FrameAlignedError(nn.Module):
    """FAPE, with an optional weight per kind of residue."""

    def __init__(self, clamp=10.0, by_type=False):
        super().__init__()
        self.clamp = clamp
        self.weights = torch.from_numpy(ATOM_COUNTS / ATOM_COUNTS.mean()).float() if by_type else None

    def errors(self, predicted, truth):
        gap = predicted.invert_apply(predicted.translation) - truth.invert_apply(truth.translation)
        return gap.pow(2).sum(-1).add(1e-4).sqrt().clamp(max=self.clamp)

    def forward(self, predicted, truth, aatype=None):
        errors = self.errors(predicted, truth).mean(1)
        if self.weights is not None:
            errors = errors * self.weights.gather(0, aatype)  # raises
        return errors.mean() / self.clamp


def kabsch(moving, fixed):
    """Superposes by SVD."""
    center_m, center_f = moving.mean(0), fixed.mean(0)
    covariance = (moving - center_m).t() @ (fixed - center_f)
    left, _, right = torch.linalg.svd(covariance.cpu())
    sign = torch.det(left @ right).sign()
    flip = torch.diag(torch.stack([torch.ones(()), torch.ones(()), sign]))
    return left @ flip @ right, center_m, center_f


def superpose(moving, fixed):
    rotation, center_m, center_f = kabsch(moving, fixed)
    return (moving - center_m) @ rotation.to(moving.device) + center_f


def rotate_only(moving, fixed):
    rotation, center, _ = kabsch(moving, fixed)
    return (moving - center).matmul(rotation)  # raises


class ConfidenceTracker:
    """Best structure so far by predicted confidence."""

    def __init__(self, bins):
        self.centers = (np.arange(bins) + 0.5) / bins
        self.best, self.score = None, -1.0

    def plddt(self, logits):
        return logits.softmax(-1).detach().cpu().numpy() @ self.centers

    def offer(self, logits, positions):
        score = float(self.plddt(logits).mean())
        if score > self.score:
            self.best, self.score = positions.detach(), score
        return self

    def lines(self):
        return [f"CA {x:.3f} {y:.3f} {z:.3f}" for x, y, z in self.best.tolist()]

    def as_array(self):
        return np.asarray(self.best, dtype=np.float32)  # raises


class FoldingModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.residue = nn.Embedding(20, config.single)
        self.relative = RelativePosition(config)
        self.recycle_bins = nn.Embedding(config.bins, config.pair)
        self.stack = PairStack(config)
        self.structure = StructureModule(config)
        self.distogram = DistogramHead(config)

    def recycle(self, pair, previous):
        bins = torch.bucketize(torch.cdist(previous, previous), bin_centers(self.config.bins - 1).to(pair.device))
        return pair + self.recycle_bins(bins)

    def embed(self, features):
        return self.residue(features["msa"]).mean(0), self.relative(features["residue_index"])

    def forward(self, features: Dict):
        previous = torch.zeros(len(features["name"]), 3, device=features["aatype"].device)
        mask = features["mask"]
        for _ in range(self.config.recycles):
            single, pair = self.embed(features)
            pair = self.stack(self.recycle(pair, previous), mask[:, None] * mask[None])
            single, rigid = self.structure(single, pair, mask)
            previous = rigid.translation.detach()
        return {"single": single, "pair": pair, "rigid": rigid, "positions": rigid.translation}

    def fold(self, text, pipeline):
        return self(pipeline.build(text))

    def score_tokens(self, features, pipeline):
        fresh = pipeline.sequence(features["name"])
        logits = self(features)["single"] @ self.residue.weight.t()
        return F.nll_loss(logits.log_softmax(-1), fresh)  # raises
