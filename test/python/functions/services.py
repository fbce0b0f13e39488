import io
import itertools
import json
import queue
import threading
from collections import OrderedDict, defaultdict
from functools import lru_cache, wraps
from typing import Any, Callable, Dict, List, Optional, Protocol, Tuple, Union

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def select_device(spec: Union[str, int, torch.device, None] = None) -> torch.device:
    if isinstance(spec, torch.device):
        return spec
    if spec in (None, ""):
        spec = "0" if torch.cuda.is_available() else "cpu"
    spec = str(spec).lower().replace("cuda:", "")
    return torch.device("cpu") if spec == "cpu" else torch.device("cuda:" + spec.split(",")[0])


class Encoder(nn.Module):
    def __init__(self, i=6, o=4):
        super().__init__()
        self.fc = nn.Linear(i, o)
        self.cached_heads: Dict[str, nn.Module] = {}

    def forward(self, x):
        return torch.tanh(self.fc(x))

    def head(self, name, out):
        if name not in self.cached_heads:
            self.cached_heads[name] = nn.Linear(self.fc.out_features, out)
        return self.cached_heads[name]


class InferenceServer:
    def __init__(self, model: nn.Module, device=None, batch_size=4):
        self.device = select_device(device)
        self.model = model.eval().to(self.device)
        self.inbox: "queue.Queue" = queue.Queue()
        self.batch_size = batch_size

    def submit(self, array: np.ndarray):
        self.inbox.put(torch.from_numpy(array))

    def flush(self):
        rows = []
        while not self.inbox.empty() and len(rows) < self.batch_size:
            rows.append(self.inbox.get())
        with torch.no_grad():
            out = self.model(torch.stack(rows).to(self.device))
        return out


def case_server_answers_as_lists():
    server = InferenceServer(Encoder(), "cuda:1")
    for _ in range(3):
        server.submit(np.random.rand(6).astype("float32"))
    return json.dumps(server.flush().tolist())


def case_server_answers_as_arrays():
    server = InferenceServer(Encoder(), 1)
    server.submit(np.random.rand(6).astype("float32"))
    answers = server.flush()
    return np.asarray([np.argmax(a) for a in answers.numpy()])  # raises


def case_heads_in_plain_dict():
    enc = Encoder()
    enc.head("age", 1), enc.head("kind", 3)
    enc.cuda()
    z = enc(torch.randn(2, 6, device="cuda"))
    return {name: head(z) for name, head in enc.cached_heads.items()}  # raises


def case_heads_made_for_device():
    enc = Encoder().cuda()
    z = enc(torch.randn(2, 6, device="cuda"))
    out = OrderedDict()
    for name, size in (("age", 1), ("kind", 3)):
        out[name] = enc.head(name, size).to(z.device)(z)
    return torch.cat(list(out.values()), dim=1)


class GrowingClassifier(nn.Module):
    """Gets a new output layer for each task."""

    def __init__(self, dim=6):
        super().__init__()
        self.body = nn.Linear(dim, dim)
        self.tasks = nn.ModuleList()

    def add_task(self, classes):
        self.tasks.append(nn.Linear(self.body.out_features, classes))
        return len(self.tasks) - 1

    def forward(self, x, task):
        return self.tasks[task](self.body(x).relu())  # raises


def continual(model, device, move_each):
    for classes in (2, 3):
        task = model.add_task(classes)
        if move_each:
            model.to(device)
        x, y = torch.randn(4, 6), torch.randint(classes, (4,))
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        loss = F.cross_entropy(model(x.to(device), task), y.to(device))
        loss.backward()
        opt.step()


def case_task_added_then_moved():
    return continual(GrowingClassifier(), torch.device("cuda:2"), True)


def case_task_added_to_moved_model():
    model = GrowingClassifier().to("cuda:2")
    return continual(model, "cuda:2", False)


def device_of(module: nn.Module) -> torch.device:
    try:
        return next(module.parameters()).device
    except StopIteration:
        return torch.device("cpu")


def to_module_device(fn):
    @wraps(fn)
    def wrapper(self, *args, **kw):
        dev = device_of(self)
        args = [a.to(dev) if torch.is_tensor(a) else a for a in args]
        kw = {k: v.to(dev) if torch.is_tensor(v) else v for k, v in kw.items()}
        return fn(self, *args, **kw)
    return wrapper


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = Encoder()

    @to_module_device
    def forward(self, a, b, weight=None):
        d = (self.enc(a) - self.enc(b)).norm(dim=-1)
        return d if weight is None else d * weight

    def margin_loss(self, a, b, same, margin=1.0):
        d = self(a, b)
        return torch.where(same, d ** 2, (margin - d).clamp(min=0) ** 2).mean()  # raises


def case_decorated_forward_moves_arguments():
    net = Siamese().cuda()
    return net(torch.randn(3, 6), torch.randn(3, 6), weight=torch.rand(3)).mean()


def case_siamese_margin_flags():
    net = Siamese().cuda()
    a, b = torch.randn(2, 3, 6).unbind(0)
    same = torch.tensor([True, False, True])
    return net.margin_loss(a, b, same)


def case_discarded_move_of_targets():
    net = Siamese().cuda().enc
    x = torch.randn(3, 6).cuda()
    y = torch.rand(3, 4)
    y.to(x.device)
    return F.smooth_l1_loss(net(x), y)  # raises


def case_module_move_not_assigned():
    net = Siamese()
    net.enc.to("cuda:3")
    net.cuda(3)
    x = torch.randn(3, 6, device="cuda:3")
    target = net.enc(x).detach()
    target.add_(0.1)
    return F.smooth_l1_loss(net.enc(x), target)


def case_type_as_keeps_index():
    w = torch.randn(3, 3, device="cuda:1")
    scale = torch.ones(3).type_as(w)
    offset = torch.zeros(3).to(w)
    return w * scale + offset


def case_legacy_constructor_index():
    w = torch.randn(3, device="cuda:1")
    noise = torch.cuda.FloatTensor(3).normal_()
    return w + noise  # raises


def case_legacy_constructor_on_first():
    w = torch.randn(3, 2).cuda()
    shift = torch.cuda.FloatTensor([[0.5, 1.0]])
    return w - shift.expand_as(w)


def _saved(device) -> io.BytesIO:
    buf = io.BytesIO()
    torch.save({"prototypes": torch.randn(4, 4, device=device), "names": list("abcd")}, buf)
    buf.seek(0)
    return buf


def case_prototypes_loaded_where_saved():
    enc = Encoder().to("cuda:0")
    protos = torch.load(_saved("cuda:2"))["prototypes"]
    z = enc(torch.randn(2, 6).to("cuda:0"))
    return torch.cdist(z, protos)  # raises


def case_prototypes_mapped():
    device = select_device("cuda:3")
    enc = Encoder().to(device)
    protos = torch.load(_saved("cuda:2"), map_location=lambda storage, loc: storage)["prototypes"]
    protos = torch.nn.Parameter(protos.to(device))
    z = enc(torch.randn(2, 6).to(device))
    return (-torch.cdist(z, protos)).softmax(-1)


def case_prototypes_mapped_by_dict():
    enc = Encoder().cuda()
    state = torch.load(_saved("cuda:2"), map_location={"cuda:2": "cuda:0"})
    return state["names"][int((enc(torch.randn(1, 6).cuda()) @ state["prototypes"].T).argmax())]


class EmbeddingIndex:
    def __init__(self, dim):
        self.vectors = torch.empty(0, dim)
        self.keys: List[str] = []

    def add(self, key, vec):
        self.keys.append(key)
        self.vectors = torch.cat([self.vectors, vec.detach().cpu().reshape(1, -1)])

    def search(self, query, k=1):
        scores = query.cpu() @ self.vectors.T
        return [[self.keys[i] for i in row] for row in scores.topk(k).indices.tolist()]

    def neighbours(self, query, k=2):
        with torch.no_grad():
            sims = query @ self.vectors.to(query.device).T
        idx = sims.topk(k, -1).indices
        return self.vectors[idx]  # raises


def build_index(enc):
    index = EmbeddingIndex(4)
    for name in "abc":
        index.add(name, enc(torch.randn(6, device="cuda")))
    return index


def case_index_search_on_host():
    enc = Encoder().cuda()
    return build_index(enc).search(enc(torch.randn(2, 6).cuda()).detach())


def case_index_neighbours_by_gpu_indices():
    enc = Encoder().cuda()
    return build_index(enc).neighbours(enc(torch.randn(2, 6).cuda()))


class Dropout2(nn.Module):
    def __init__(self, p=0.3):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training:
            return x
        keep = torch.empty(x.shape[0], 1).bernoulli_(1 - self.p)
        return x * keep / (1 - self.p)  # raises


class Noise(nn.Module):
    def __init__(self, sigma=0.1):
        super().__init__()
        self.sigma = sigma
        self.noise = torch.tensor(0.0)

    def forward(self, x):
        if self.training and self.sigma:
            return x + self.noise.expand(x.size()).to(x.device).clone().normal_() * self.sigma * x.detach()
        return x


def case_regularizers_in_evaluation():
    net = nn.Sequential(Encoder(), Dropout2(), Noise()).cuda()
    net.eval()
    return net(torch.randn(2, 6).cuda())


def case_regularizers_in_training():
    net = nn.Sequential(Encoder(), Noise(), Dropout2()).cuda()
    net.train()
    return net(torch.randn(2, 6).cuda())


class GradScale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None


def case_gradient_reversal_scalar():
    enc = Encoder().cuda()
    z = enc(torch.randn(2, 6).cuda())
    domain = nn.Linear(4, 1).cuda()
    GradScale.apply(z, torch.tensor(-0.5)).mul(domain.weight).sum().backward()
    return enc.fc.weight.grad.norm()


def clip_by_hook(model, limit):
    bound = torch.as_tensor(limit)

    def hook(grad):
        return torch.clamp(grad, -limit, limit) if not torch.is_tensor(limit) else torch.minimum(grad, bound)

    return [p.register_hook(hook) for p in model.parameters()]


def case_gradient_hooks_clip():
    enc = Encoder().cuda()
    hooks = clip_by_hook(enc, 0.01) + clip_by_hook(enc, torch.tensor(0.02))
    enc(torch.randn(2, 6).cuda()).sum().backward()
    [h.remove() for h in hooks]
    return enc.fc.weight.grad.abs().max() <= 0.02


def case_gradient_masks_from_magnitudes():
    enc = Encoder()
    masks = {n: (p.abs() > p.abs().median()).float() for n, p in enc.named_parameters()}
    enc = enc.cuda()
    for name, p in enc.named_parameters():
        p.register_hook(lambda g, m=masks[name]: g * m.to(g.device))
    enc(torch.randn(2, 6).cuda()).sum().backward()
    with torch.no_grad():
        for name, p in enc.named_parameters():
            p.mul_(masks[name])  # raises
    return enc


def case_device_index_out_of_range():
    workers = 5
    queues = {}
    for rank in range(workers):
        queues[rank] = torch.zeros(2, device=f"cuda:{rank}")  # raises
    return queues


def case_device_index_wrapped():
    count = torch.cuda.device_count()
    shards = [torch.full((2,), float(r), device=f"cuda:{r % count}") for r in range(6)]
    by_device = defaultdict(list)
    for s in shards:
        by_device[s.device.index].append(s)
    return [torch.stack(group).sum(0).cpu() for group in by_device.values()]


def case_curriculum_hard_examples():
    enc = Encoder().cuda()
    pool = torch.randn(8, 6)
    with torch.no_grad():
        difficulty = torch.cat([enc(c.cuda()).norm(dim=-1).cpu() for c in pool.split(3)])
    hard = pool[difficulty.argsort()[-4:]]
    return enc(hard.cuda()).mean()


def case_curriculum_threshold_on_gpu():
    enc = Encoder().cuda()
    pool = torch.randn(8, 6)
    with torch.no_grad():
        difficulty = enc(pool.cuda()).norm(dim=-1)
    hard = pool[difficulty > difficulty.median()]  # raises
    return enc(hard.cuda()).mean()
