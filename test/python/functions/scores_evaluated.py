"""Metrics, retrieval, graphs and detection: indexing, sorting, scattering, arrays."""
import math
from collections import Counter, OrderedDict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class ConfusionMatrix:
    def __init__(self, classes, device=None):
        self.classes = classes
        self.matrix = torch.zeros(classes, classes, dtype=torch.long, device=device)

    def update(self, target, predicted):
        valid = (target >= 0) & (target < self.classes)
        index = self.classes * target[valid] + predicted[valid]
        counts = torch.bincount(index, minlength=self.classes ** 2).view(self.classes, self.classes)
        self.matrix += counts  # raises

    def compute(self):
        matrix = self.matrix.float()
        diagonal = matrix.diag()
        return {"accuracy": (diagonal.sum() / matrix.sum()).item(),
                "iou": (diagonal / (matrix.sum(0) + matrix.sum(1) - diagonal).clamp(min=1)).tolist()}


def _predictions(device, count=6, classes=3):
    logits = torch.randn(count, classes, device=device)
    target = torch.arange(count, device=device) % classes
    return logits, target


def case_confusion_on_device_of_model():
    metric = ConfusionMatrix(3, device="cuda")
    for _ in range(2):
        logits, target = _predictions("cuda")
        metric.update(target, logits.argmax(1))
    return metric.compute()


def case_confusion_fed_from_host():
    metric = ConfusionMatrix(3)
    for _ in range(2):
        logits, target = _predictions("cuda")
        metric.update(target.cpu(), logits.argmax(1).cpu())
    return metric.compute()


def case_confusion_fed_from_device():
    metric = ConfusionMatrix(3)
    for _ in range(2):
        logits, target = _predictions("cuda")
        metric.update(target, logits.argmax(1))
    return metric.compute()


class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def average(self):
        return self.sum / max(self.count, 1)


@torch.no_grad()
def _topk_accuracy(logits, target, topk=(1,)):
    _, predicted = logits.topk(max(topk), 1, True, True)
    correct = predicted.t().eq(target.view(1, -1).expand_as(predicted.t()))
    return [correct[:k].reshape(-1).float().sum(0).mul_(100.0 / target.size(0)) for k in topk]


def case_meters_of_tensors():
    meters = OrderedDict((name, AverageMeter()) for name in ("top1", "top2"))
    for _ in range(2):
        logits, target = _predictions("cuda:1")
        for meter, value in zip(meters.values(), _topk_accuracy(logits, target, (1, 2))):
            meter.update(value, target.size(0))
    return {name: round(float(meter.average), 2) for name, meter in meters.items()}


def case_meters_into_an_array():
    meters = OrderedDict((name, AverageMeter()) for name in ("top1", "top2"))
    for _ in range(2):
        logits, target = _predictions("cuda:1")
        for meter, value in zip(meters.values(), _topk_accuracy(logits, target, (1, 2))):
            meter.update(value, target.size(0))
    return np.round(np.asarray(meters["top1"].average), 2)  # raises


def case_scores_gathered_to_arrays():
    scores, labels = [], []
    for index in range(3):
        logits, target = _predictions(f"cuda:{index}")
        scores.append(logits.softmax(-1)[:, 1].cpu())
        labels.append(target.cpu().numpy())
    score, label = torch.cat(scores).numpy(), np.concatenate(labels) == 1
    order = np.argsort(-score)
    return float(np.cumsum(label[order])[-1] / label.sum())


def case_scores_gathered_from_several_gpus():
    scores, labels = [], []
    for index in range(3):
        logits, target = _predictions(f"cuda:{index}")
        scores.append(logits.softmax(-1)[:, 1])
        labels.append(target.cpu().numpy())
    score, label = torch.cat(scores).cpu().numpy(), np.concatenate(labels) == 1  # raises
    order = np.argsort(-score)
    return float(np.cumsum(label[order])[-1] / label.sum())


class FeatureBank:
    """Rows for nearest neighbours, filled as a ring."""

    def __init__(self, size, width, device="cpu"):
        self.rows = F.normalize(torch.randn(size, width), dim=1).to(device)
        self.labels = torch.zeros(size, dtype=torch.long, device=device)
        self.pointer = 0

    @torch.no_grad()
    def enqueue(self, features, labels):
        count = features.shape[0]
        at = torch.arange(self.pointer, self.pointer + count) % self.rows.shape[0]
        self.rows[at] = features  # raises
        self.labels[at] = labels
        self.pointer = (self.pointer + count) % self.rows.shape[0]

    def classify(self, query, k=2):
        distance = torch.cdist(query.to(self.rows.device), self.rows)
        nearest = distance.topk(k, largest=False).indices
        return self.labels[nearest].mode(dim=1).values


def case_bank_on_gpu_with_host_positions():
    bank = FeatureBank(8, 4, "cuda:2")
    features = F.normalize(torch.randn(3, 4, device="cuda:2"), dim=1)
    bank.enqueue(features, torch.tensor([0, 1, 2], device="cuda:2"))
    return bank.classify(features.cpu(), k=1).tolist()


def case_bank_on_host_with_gpu_features():
    bank = FeatureBank(8, 4)
    features = F.normalize(torch.randn(3, 4, device="cuda:2"), dim=1)
    bank.enqueue(features, torch.tensor([0, 1, 2]))
    return bank.classify(features, k=1).tolist()


def case_rows_written_one_by_one():
    table = torch.zeros(4, 3)
    features = torch.randn(4, 3, device="cuda")
    for row, feature in enumerate(features):
        table[row] = feature
        table[row, 0] = feature.max()
    table[1:3].copy_(features[:2])
    return table.numpy().sum()


def _encode(texts, width=4, device="cuda"):
    return torch.stack([torch.full((width,), float(len(text)), device=device) for text in texts])


def case_ranking_reordered_on_host():
    texts = ["a", "long text", "text"]
    embeddings = F.normalize(_encode(texts) + torch.randn(3, 4, device="cuda"), dim=-1)
    scores = embeddings @ embeddings[0]
    order = scores.argsort(descending=True)
    lengths = torch.tensor([len(text) for text in texts])
    ranked = [texts[i] for i in order]
    return ranked, lengths[order.cpu()].tolist(), scores[lengths > 1].tolist()


def case_ranking_reordered_by_gpu_order():
    texts = ["a", "long text", "text"]
    embeddings = F.normalize(_encode(texts) + torch.randn(3, 4, device="cuda"), dim=-1)
    scores = embeddings @ embeddings[0]
    order = scores.argsort(descending=True)
    lengths = torch.tensor([len(text) for text in texts])
    return lengths[order].tolist(), [texts[i] for i in order.tolist()]  # raises


class GraphConv(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x, edges):
        source, target = edges
        messages = self.linear(x).index_select(0, source)
        out = torch.zeros_like(x).index_add_(0, target, messages)
        degree = torch.bincount(target, minlength=x.shape[0])
        return out / degree.clamp(min=1).unsqueeze(-1)


def _ring(nodes):
    at = torch.arange(nodes)
    return torch.stack([at, at.roll(1)])


def case_graph_convolution_placed():
    conv = GraphConv(3).to("cuda")
    x = torch.randn(5, 3, device="cuda")
    edges = _ring(5)
    out = conv(x, edges.to(x.device))
    return out[edges[0]].norm(dim=-1).tolist()


def case_graph_convolution_by_sparse_matrix():
    conv = nn.Linear(3, 3).to("cuda")
    x = torch.randn(5, 3, device="cuda")
    edges = _ring(5)
    adjacency = torch.sparse_coo_tensor(edges, torch.ones(edges.shape[1]), (5, 5), device="cuda").coalesce()
    return torch.sparse.mm(adjacency, conv(x)).sum(0).tolist()


def case_graph_pooling_by_batch_vector():
    x = torch.randn(5, 3, device="cuda")
    membership = torch.tensor([0, 0, 1, 1, 1])
    graphs = int(membership.max()) + 1
    pooled = x.new_zeros(graphs, 3)
    pooled.scatter_add_(0, membership.unsqueeze(1).expand(-1, 3), x)  # raises
    return pooled / torch.bincount(membership).unsqueeze(1).to(x.device)


def _iou(boxes, others):
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    other_area = (others[:, 2] - others[:, 0]) * (others[:, 3] - others[:, 1])
    low = torch.max(boxes[:, None, :2], others[:, :2])  # raises
    high = torch.min(boxes[:, None, 2:], others[:, 2:])
    inside = (high - low).clamp(min=0).prod(-1)
    return inside / (area[:, None] + other_area - inside)


class AnchorGrid(nn.Module):
    def __init__(self, sizes=(2.0, 4.0)):
        super().__init__()
        self.cells = [torch.tensor([-size, -size, size, size]) / 2 for size in sizes]
        self.marker = nn.Parameter(torch.zeros(1))

    def shifts(self, height, width, device):
        y, x = torch.meshgrid(torch.arange(height, device=device), torch.arange(width, device=device), indexing="ij")
        return torch.stack([x, y, x, y], dim=-1).view(-1, 1, 4).float()

    def forward(self, height, width):
        device = self.marker.device
        self.cells = [cell.to(device) for cell in self.cells]
        return (self.shifts(height, width, device) + torch.stack(self.cells)).view(-1, 4)


def case_anchors_matched_on_gpu():
    anchors = AnchorGrid().to("cuda:1")(2, 2)
    truth = torch.tensor([[0.0, 0.0, 1.0, 1.0]])
    overlap = _iou(anchors, truth.type_as(anchors))
    matched = overlap.max(1).values.gt(0.1)
    return truth.numpy(), matched.sum().item()


def case_anchors_matched_with_annotations():
    anchors = AnchorGrid().to("cuda:1")(2, 2)
    annotations = [{"boxes": np.array([[0, 0, 1, 1]], dtype=np.float32)}]
    for each in annotations:
        each["boxes"] = torch.from_numpy(each["boxes"])
    return [_iou(anchors, each["boxes"]).max().item() for each in annotations]


def _suppress(boxes, scores, threshold=0.5):
    keep, order = [], scores.argsort(descending=True)
    while order.numel():
        best = order[0]
        keep.append(best.item())
        order = order[1:][_iou(boxes[best][None], boxes[order[1:]])[0] <= threshold]
    return torch.tensor(keep, dtype=torch.long)


def case_boxes_kept_by_host_index():
    boxes = torch.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.9], [3.0, 3.0, 4.0, 4.0]]).cuda()
    scores = torch.tensor([0.5, 0.9, 0.3], device=boxes.device)
    keep = _suppress(boxes, scores)
    return boxes[keep].cpu().numpy(), scores[keep].tolist()


def case_boxes_taken_by_host_index():
    boxes = torch.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.9], [3.0, 3.0, 4.0, 4.0]]).cuda()
    scores = torch.tensor([0.5, 0.9, 0.3], device=boxes.device)
    keep = _suppress(boxes, scores)
    return torch.index_select(boxes, 0, keep).tolist(), scores[keep].tolist()  # raises


def _calibration(confidence, correct, bins=4):
    edges = torch.linspace(0, 1, bins + 1)
    error = torch.zeros(1, device=confidence.device)
    for low, high in zip(edges[:-1], edges[1:]):
        inside = confidence.gt(low) & confidence.le(high)
        if inside.any():
            error += (confidence[inside].mean() - correct[inside].float().mean()).abs() * inside.float().mean()
    return error


def _calibration_bucketed(confidence, correct, bins=4):
    edges = torch.linspace(0, 1, bins + 1)[1:-1]
    bucket = torch.bucketize(confidence, edges)  # raises
    total = confidence.new_zeros(bins).scatter_add_(0, bucket, confidence)
    right = confidence.new_zeros(bins).scatter_add_(0, bucket, correct.float())
    return (total - right).abs().sum() / len(confidence)


def case_calibration_edge_by_edge():
    logits, target = _predictions("cuda")
    confidence, predicted = logits.softmax(-1).max(-1)
    return _calibration(confidence, predicted == target).item()


def case_calibration_bucketed():
    logits, target = _predictions("cuda")
    confidence, predicted = logits.softmax(-1).max(-1)
    return _calibration_bucketed(confidence, predicted == target).item()


def case_error_counts_by_class():
    logits, target = _predictions("cuda:3")
    misses = Counter(target[logits.argmax(-1) != target].tolist())
    names = np.array(["ant", "bee", "cat"])
    predicted = names[logits.argmax(-1).cpu()]
    rate = torch.tensor([misses[i] for i in range(3)], device=target.device) / target.bincount(minlength=3)
    perplexity = math.exp(F.cross_entropy(logits, target))
    return predicted.tolist(), rate.tolist(), perplexity


def case_names_indexed_by_predictions():
    logits, target = _predictions("cuda:3")
    names = np.array(["ant", "bee", "cat"])
    predicted = logits.argmax(-1)
    hits = int((predicted == target).sum())
    return names[predicted.detach().numpy()], hits  # raises
