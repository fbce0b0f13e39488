"""Text classifiers: encoders, heads, losses and evaluation."""
import math
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple, Type

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

ENCODERS: Dict[str, Type["TextEncoder"]] = {}


def register_encoder(name: str):
    def wrap(cls):
        ENCODERS[name] = cls
        return cls
    return wrap


@dataclass
class ClassifierConfig:
    encoder: str = "cnn"
    vocab_size: int = 60
    embed_dim: int = 12
    hidden: int = 10
    num_classes: int = 4
    kernel_sizes: Tuple[int, ...] = (2, 3, 5)
    max_len: int = 32
    pad_id: int = 0
    unk_id: int = 1
    word_dropout: float = 0.0
    head_names: Tuple[str, ...] = ()
    label_tree: Dict[int, List[int]] = field(default_factory=dict)


class Vocabulary:
    def __init__(self, words: Sequence[str]):
        self.itos = ["<pad>", "<unk>"] + list(words)
        self.stoi = {word: index for index, word in enumerate(self.itos)}

    def __len__(self):
        return len(self.itos)

    def encode(self, text: str) -> List[int]:
        return [self.stoi.get(word, 1) for word in text.lower().split()]


class TextCollator:
    """Turns (text, label) pairs into a padded batch."""

    def __init__(self, vocab: Vocabulary, max_len: int = 32):
        self.vocab = vocab
        self.max_len = max_len

    def __call__(self, samples) -> Dict[str, Any]:
        rows = [self.vocab.encode(text)[:self.max_len] for text, _ in samples]
        width = max(len(row) for row in rows)
        ids = torch.zeros(len(rows), width, dtype=torch.long)
        for index, row in enumerate(rows):
            ids[index, :len(row)] = torch.tensor(row)
        return {"ids": ids, "labels": torch.tensor([label for _, label in samples]),
                "texts": [text for text, _ in samples]}


def move_batch(batch, device):
    if torch.is_tensor(batch):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {key: move_batch(value, device) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)(move_batch(value, device) for value in batch)
    return batch


def masked_mean(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    weight = mask.unsqueeze(-1).to(values.dtype)
    return (values * weight).sum(1) / weight.sum(1).clamp(min=1.0)


class TextEncoder(nn.Module):
    """Base of the encoders: embeds, then asks the subclass for one vector per text."""

    def __init__(self, config: ClassifierConfig):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.embed_dim, padding_idx=config.pad_id)
        self.build(config)

    @property
    def device(self) -> torch.device:
        return self.embedding.weight.device

    def build(self, config):
        raise NotImplementedError

    def pooled(self, embedded, mask):
        raise NotImplementedError

    def drop_words(self, ids):
        rate = self.config.word_dropout
        if not self.training or rate <= 0:
            return ids
        dropped = torch.rand(ids.shape) < rate
        return ids.masked_fill(dropped, self.config.unk_id)  # raises

    def forward(self, ids):
        mask = ids.ne(self.config.pad_id)
        return self.pooled(self.embedding(self.drop_words(ids)), mask)


@register_encoder("cnn")
class ConvEncoder(TextEncoder):
    def build(self, config):
        self.convs = nn.ModuleList(nn.Conv1d(config.embed_dim, config.hidden, size) for size in config.kernel_sizes)
        self.out_dim = config.hidden * len(config.kernel_sizes)

    def _widened(self, channels):
        missing = max(self.config.kernel_sizes) - channels.size(2)
        if missing <= 0:
            return channels
        filler = torch.zeros(channels.size(0), channels.size(1), missing)
        return torch.cat([channels, filler], dim=2)  # raises

    def pooled(self, embedded, mask):
        channels = self._widened((embedded * mask.unsqueeze(-1)).transpose(1, 2))
        return torch.cat([F.relu(conv(channels)).amax(dim=2) for conv in self.convs], dim=1)


@register_encoder("gru")
class RecurrentEncoder(TextEncoder):
    def build(self, config):
        self.rnn = nn.GRU(config.embed_dim, config.hidden, batch_first=True, bidirectional=True)
        self.out_dim = 2 * config.hidden

    def _lengths(self, mask):
        return mask.sum(1).clamp(min=1).tolist()

    def pooled(self, embedded, mask):
        start = embedded.new_zeros(2, embedded.size(0), self.config.hidden)
        packed = pack_padded_sequence(embedded, self._lengths(mask), batch_first=True, enforce_sorted=False)
        _, last = self.rnn(packed, start)
        return last.transpose(0, 1).reshape(embedded.size(0), -1)


@register_encoder("gru_sequence")
class RecurrentSequenceEncoder(RecurrentEncoder):
    """Mean over the states instead of the last state."""

    def _lengths(self, mask):
        return mask.long().sum(dim=1)

    def pooled(self, embedded, mask):
        lengths = self._lengths(mask)
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)  # raises
        states, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return masked_mean(states, mask[:, :states.size(1)])


@register_encoder("attention")
class AttentionEncoder(TextEncoder):
    def build(self, config):
        self.query = nn.Parameter(torch.randn(config.embed_dim))
        self.register_buffer("positions", self._sinusoid(config.max_len, config.embed_dim), persistent=False)
        self.out_dim = config.embed_dim

    @staticmethod
    def _sinusoid(length, dim):
        step = torch.arange(length).float().unsqueeze(1)
        rate = torch.exp(torch.arange(0, dim, 2).float() * (-math.log(1e4) / dim))
        table = torch.zeros(length, dim)
        table[:, 0::2] = torch.sin(step * rate)
        table[:, 1::2] = torch.cos(step * rate)
        return table

    def pooled(self, embedded, mask):
        states = embedded + self.positions[:embedded.size(1)]
        scores = (states @ self.query) / math.sqrt(states.size(-1))
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        return torch.einsum("bl,bld->bd", scores.softmax(dim=-1), states)


@register_encoder("bucketed_attention")
class BucketedAttentionEncoder(AttentionEncoder):
    """Adds a learned bias for the logarithmic distance to the end of the text."""
    buckets = 6

    def build(self, config):
        super().build(config)
        self.distance_bias = nn.Embedding(self.buckets, 1)

    def _distance_buckets(self, length):
        distance = torch.arange(length - 1, -1, -1)
        return torch.log2(distance.float() + 1).long().clamp(max=self.buckets - 1)

    def pooled(self, embedded, mask):
        bias = self.distance_bias(self._distance_buckets(embedded.size(1)))  # raises
        return super().pooled(embedded + bias, mask)


class NgramBag(nn.Module):
    """fastText: hashed bigrams in an EmbeddingBag, offsets made from the lengths."""

    def __init__(self, buckets=97, dim=8, num_classes=4):
        super().__init__()
        self.buckets = buckets
        self.bag = nn.EmbeddingBag(buckets, dim, mode="mean")
        self.out = nn.Linear(dim, num_classes)

    def _hashed(self, ids):
        return (ids[:, :-1] * 31 + ids[:, 1:]) % self.buckets

    def forward(self, ids):
        grams = self._hashed(ids)
        lengths = torch.full((grams.size(0),), grams.size(1), dtype=torch.long)
        offsets = F.pad(lengths.cumsum(0), (1, 0))[:-1]
        return self.out(self.bag(grams.reshape(-1), offsets.to(grams.device)))


class TextClassifier(nn.Module):
    def __init__(self, config: ClassifierConfig):
        super().__init__()
        self.config = config
        self.encoder = ENCODERS[config.encoder](config)
        self.out = nn.Linear(self.encoder.out_dim, config.num_classes)
        self.log_temperature = nn.Parameter(torch.zeros(()), requires_grad=False)

    def forward(self, ids):
        return self.out(self.encoder(ids)) / self.log_temperature.exp()

    @torch.no_grad()
    def predict(self, batch):
        self.eval()
        batch = move_batch(batch, self.encoder.device)
        order = batch["ids"].ne(self.config.pad_id).sum(1).cpu().argsort(descending=True)
        logits = self(batch["ids"][order])
        return logits[order.argsort()].argmax(1)

    def calibrate(self, ids, labels, grid=(0.5, 1.0, 2.0)):
        losses = []
        for value in grid:
            self.log_temperature.data = torch.tensor(math.log(value))
            losses.append(F.cross_entropy(self(ids), labels).item())
        self.log_temperature.data = torch.tensor(math.log(grid[int(np.argmin(losses))]))
        return losses


class MultiHeadClassifier(TextClassifier):
    """One output layer for each task, e.g. topic and tone."""

    def __init__(self, config):
        super().__init__(config)
        self.heads = {name: nn.Linear(self.encoder.out_dim, config.num_classes) for name in config.head_names}

    def forward(self, ids, task=None):
        if task is None:
            return super().forward(ids)
        features = self.encoder(ids)
        return self.heads[task](features)  # raises


class HierarchicalClassifier(TextClassifier):
    """Scores of groups of leaves, by the tree of the configuration."""

    def __init__(self, config):
        super().__init__(config)
        self.members = {parent: torch.tensor(leaves) for parent, leaves in config.label_tree.items()}

    def group_scores(self, ids):
        logits = self(ids)
        columns = [logits.index_select(1, leaves).logsumexp(1) for leaves in self.members.values()]  # raises
        return torch.stack(columns, dim=1)

    def best_leaf(self, ids, parent):
        leaves = self.members[parent]
        return leaves[self(ids)[:, leaves].argmax(1).cpu()]


class Ensemble(nn.Module):
    def __init__(self, members: Sequence[nn.Module], votes: Optional[Sequence[float]] = None):
        super().__init__()
        self.members = nn.ModuleList(members)
        self.votes = list(votes) if votes is not None else None

    def forward(self, ids):
        scores = torch.stack([member(ids).softmax(-1) for member in self.members])
        if self.votes is None:
            return scores.mean(0)
        share = torch.tensor(self.votes) / sum(self.votes)
        return torch.tensordot(share, scores, dims=1)  # raises


class FocalLoss(nn.Module):
    def __init__(self, num_classes, gamma=2.0, alpha: Optional[Sequence[float]] = None):
        super().__init__()
        self.gamma = gamma
        self.alpha = torch.ones(num_classes) if alpha is None else torch.tensor(alpha)

    def forward(self, logits, labels):
        log_p = F.log_softmax(logits, -1).gather(1, labels.unsqueeze(1)).squeeze(1)
        alpha = self.alpha[labels]  # raises
        return -(alpha * (1 - log_p.exp()) ** self.gamma * log_p).mean()


class ClassBalancedLoss(nn.Module):
    """Weights by the effective number of samples."""

    def __init__(self, counts: np.ndarray, beta=0.99):
        super().__init__()
        weight = (1 - beta) / (1 - np.power(beta, counts))
        self.weight = nn.Parameter(torch.from_numpy(weight / weight.sum()).float(), requires_grad=False)

    def forward(self, logits, labels):
        return F.cross_entropy(logits, labels, weight=self.weight)


class LabelSmoothing(nn.Module):
    def __init__(self, smoothing=0.1):
        super().__init__()
        self.smoothing = smoothing
        self.confidence = torch.tensor(1.0 - smoothing)

    def forward(self, logits, labels):
        log_p = logits.log_softmax(-1)
        nll = -log_p.gather(1, labels[:, None]).squeeze(1)
        return (self.confidence * nll - self.smoothing * log_p.mean(-1)).mean()


class SoftLabelLoss(nn.Module):
    """Distribution of similar classes in place of one hot targets."""

    def __init__(self, num_classes, spread=0.2):
        super().__init__()
        self.num_classes, self.spread = num_classes, spread

    def _targets(self, labels):
        rest = torch.full((labels.size(0), self.num_classes), self.spread / (self.num_classes - 1))
        return rest.scatter_(1, labels.unsqueeze(1), 1 - self.spread)  # raises

    def forward(self, logits, labels):
        return F.kl_div(logits.log_softmax(-1), self._targets(labels), reduction="batchmean")


class ConfusionMatrix:
    def __init__(self, num_classes):
        self.num_classes = num_classes
        self.reset()

    def reset(self):
        self.matrix = torch.zeros(self.num_classes, self.num_classes, dtype=torch.long)

    def _counts(self, predicted, labels):
        cells = labels * self.num_classes + predicted
        return torch.bincount(cells, minlength=self.num_classes ** 2).view_as(self.matrix)

    def update(self, logits, labels):
        self.matrix += self._counts(logits.argmax(-1), labels)  # raises

    def update_from_batch(self, logits, labels):
        self.matrix += self._counts(logits.argmax(-1).cpu(), labels.cpu())

    def f1(self):
        hit = self.matrix.diag().float()
        total = self.matrix.sum(0) + self.matrix.sum(1)
        return (2 * hit / total.clamp(min=1)).numpy()


class ThresholdTuner:
    """Looks for the threshold of each class of a multi-label model."""

    def __init__(self, steps=5):
        self.candidates = np.linspace(0.1, 0.9, steps)

    def accuracy_at(self, scores, truth, threshold):
        return ((scores > threshold) == (truth > 0.5)).float().mean().item()

    def best_common(self, logits, truth):
        scores = torch.sigmoid(logits)
        return max(self.candidates, key=lambda value: self.accuracy_at(scores, truth, float(value)))

    def best_for_classes(self, logits, truth):
        truth = truth.cpu().numpy() > 0.5
        scores = torch.sigmoid(logits).detach().numpy()  # raises
        agreement = [((scores > value) == truth).mean(0) for value in self.candidates]
        return self.candidates[np.argmax(agreement, axis=0)]


def build_classifier(config: ClassifierConfig, device=None) -> TextClassifier:
    cls = TextClassifier
    if config.head_names:
        cls = MultiHeadClassifier
    elif config.label_tree:
        cls = HierarchicalClassifier
    return cls(config).to(device if device is not None else torch.device("cuda"))
