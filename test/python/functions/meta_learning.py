"""Meta-learning and continual learning: inner loops, importance, replay, prototypes."""
import copy
import random
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import parameters_to_vector, vector_to_parameters

@dataclass
class MetaConfig:
    ways: int = 3
    shots: int = 2
    queries: int = 2
    features: int = 6
    hidden: int = 8
    inner_lr: float = 0.1
    inner_steps: int = 2
    device: str = "cuda:0"

class EpisodeSampler:
    """Gives support and query sets; the pool is kept in numpy."""
    def __init__(self, cfg, seed=0):
        self.cfg, self.rng = cfg, np.random.RandomState(seed)
        self.pool = self.rng.rand(8, 10, cfg.features).astype(np.float32)

    def relabel(self, count, device):
        return torch.arange(self.cfg.ways, device=device).repeat_interleave(count)

    def sample(self, device=None, labels=True):
        device = device or self.cfg.device
        classes = self.rng.choice(len(self.pool), self.cfg.ways, replace=False)
        total = self.cfg.shots + self.cfg.queries
        rows = torch.from_numpy(self.pool[classes][:, :total]).to(device)
        support = rows[:, :self.cfg.shots].flatten(0, 1)
        query = rows[:, self.cfg.shots:].flatten(0, 1)
        where = device if labels else None
        return (support, self.relabel(self.cfg.shots, where)), (query, self.relabel(self.cfg.queries, where))

class FunctionalMLP(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.first = nn.Linear(cfg.features, cfg.hidden)
        self.second = nn.Linear(cfg.hidden, cfg.ways)

    def forward(self, x, params=None):
        params = params or OrderedDict(self.named_parameters())
        x = F.relu(F.linear(x, params["first.weight"], params["first.bias"]))  # raises
        return F.linear(x, params["second.weight"], params["second.bias"])

class InnerLoop:
    def __init__(self, model, cfg):
        self.model, self.cfg = model, cfg

    def rates(self, params):
        return {name: self.cfg.inner_lr for name in params}

    def start(self):
        return OrderedDict((name, p) for name, p in self.model.named_parameters())

    def adapt(self, support):
        params, (x, y) = self.start(), support
        for _ in range(self.cfg.inner_steps):
            loss = F.cross_entropy(self.model(x, params), y)  # raises
            grads = torch.autograd.grad(loss, list(params.values()), create_graph=True)
            params = self.update(params, grads)
        return params

    def update(self, params, grads):
        rates = self.rates(params)
        return OrderedDict((n, p - rates[n] * g) for (n, p), g in zip(params.items(), grads))  # raises

    def outer_loss(self, episode):
        support, (x, y) = episode
        return F.cross_entropy(self.model(x, self.adapt(support)), y)

class ScalarRateLoop(InnerLoop):
    """One learned rate per tensor, a scalar left where it was made."""
    def __init__(self, model, cfg):
        super().__init__(model, cfg)
        self.lr = {n: torch.tensor(cfg.inner_lr, requires_grad=True) for n, _ in model.named_parameters()}

    def rates(self, params):
        return self.lr

class ElementRateLoop(ScalarRateLoop):
    def __init__(self, model, cfg, like=False):
        super().__init__(model, cfg)
        for name, p in model.named_parameters():
            full = torch.full_like(p, cfg.inner_lr) if like else torch.full(p.shape, cfg.inner_lr)
            self.lr[name] = full.requires_grad_()

class SnapshotLoop(InnerLoop):
    """Starts from weights remembered when it was built."""
    def __init__(self, model, cfg):
        super().__init__(model, cfg)
        self.snapshot = copy.deepcopy(OrderedDict(model.named_parameters()))

    def start(self):
        return self.snapshot

class Reptile:
    def __init__(self, model, cfg, store=None):
        self.model, self.cfg = model, cfg
        self.slow = parameters_to_vector(model.parameters()).detach().clone()
        self.slow = self.slow if store is None else self.slow.to(store)

    def fast_weights(self, episode):
        twin = copy.deepcopy(self.model)
        optimizer = torch.optim.Adam(twin.parameters(), lr=0.01)
        for x, y in episode:
            optimizer.zero_grad()
            F.cross_entropy(twin(x), y).backward()
            optimizer.step()
        return parameters_to_vector(twin.parameters()).detach()

    def move_towards(self, fast, epsilon=0.5):
        self.slow = self.slow + epsilon * (fast - self.slow)  # raises
        vector_to_parameters(self.slow, self.model.parameters())

class ProtoHead:
    def __init__(self, encoder, ways):
        self.encoder, self.ways = encoder, ways

    def prototypes(self, support):
        x, y = support
        z = self.encoder(x)
        sums = z.new_zeros(self.ways, z.shape[1]).index_add_(0, y, z)  # raises
        return sums / torch.bincount(y, minlength=self.ways)[:, None]

    def logits(self, support, query):
        return -torch.cdist(self.encoder(query), self.prototypes(support))

class MaskedProtoHead(ProtoHead):
    """Indexes rather than adds."""
    def prototypes(self, support):
        x, y = support
        z = self.encoder(x)
        return torch.stack([z[y == way].mean(0) for way in range(self.ways)])

class RunningProtoHead(ProtoHead):
    def __init__(self, encoder, ways, decay=0.5):
        super().__init__(encoder, ways)
        self.memory, self.decay = {}, decay

    def observe(self, support, keep_on=None):
        for way, proto in enumerate(MaskedProtoHead.prototypes(self, support).detach()):
            if way in self.memory:
                proto = self.memory[way].to(proto).lerp(proto, self.decay)
            self.memory[way] = proto if keep_on is None else proto.to(keep_on)

    def classify(self, query):
        bank = torch.stack([self.memory[way] for way in sorted(self.memory)])  # raises
        return (self.encoder(query) @ bank.t()).argmax(1)

class Fisher:
    def __init__(self, model, store="cpu"):
        self.model, self.store = model, store
        self.diag, self.anchor = {}, {}

    def named(self):
        return [(n, p) for n, p in self.model.named_parameters() if p.requires_grad]

    def estimate(self, batches):
        total = {n: torch.zeros_like(p) for n, p in self.named()}
        for x, y in batches:
            self.model.zero_grad()
            F.nll_loss(F.log_softmax(self.model(x), 1), y).backward()
            for n, p in self.named():
                total[n] += p.grad.detach() ** 2 / len(batches)
        self.diag = {n: value.to(self.store) for n, value in total.items()}
        self.anchor = {n: p.detach().clone().to(self.store) for n, p in self.named()}
        return self

    def penalty(self):
        terms = [(self.diag[n] * (p - self.anchor[n]) ** 2).sum() for n, p in self.named()]  # raises
        return torch.stack(terms).sum()

    def top(self, count=3):
        flat = torch.cat([value.flatten() for value in self.diag.values()])
        return flat.topk(count).values.numpy()

class PagedFisher(Fisher):
    def penalty(self):
        total = torch.tensor(0.0)
        for n, p in self.named():
            gap = p - self.anchor[n].to(p.device, non_blocking=True)
            total = total + (self.diag[n].to(p.device) * gap ** 2).sum()
        return total

class SynapticIntelligence:
    """Path integral of gradient times step."""
    def __init__(self, model):
        self.model = model
        self.path = {n: 0.0 for n, _ in model.named_parameters()}
        self.before = {n: p.detach().clone() for n, p in model.named_parameters()}

    def record(self):
        for n, p in self.model.named_parameters():
            self.path[n] = self.path[n] - p.grad * (p.detach() - self.before[n])  # raises
            self.before[n] = p.detach().clone()

class ReservoirBuffer:
    def __init__(self, size, cfg, device=None):
        self.size, self.seen = size, 0
        self.x = torch.zeros(size, cfg.features, device=device)
        self.y = torch.zeros(size, dtype=torch.long, device=device)

    def add(self, x, y):
        for row, label in zip(x.detach(), y):
            slot = self.seen if self.seen < self.size else random.randrange(self.seen + 1)
            if slot < self.size:
                self.x[slot], self.y[slot] = row, label
            self.seen += 1

    def draw(self, count, device=None):
        rows = torch.randperm(min(self.seen, self.size))[:count]
        return tuple(t[rows] if device is None else t[rows].to(device) for t in (self.x, self.y))

class ReplayTrainer:
    def __init__(self, cfg, model, buffer, penalty=None):
        self.cfg, self.model, self.buffer, self.penalty = cfg, model, buffer, penalty
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def mixed(self, x, y, draw_to=None):
        if self.buffer.seen:
            old_x, old_y = self.buffer.draw(4, draw_to)
            x, y = torch.cat([x, old_x]), torch.cat([y, old_y])  # raises
        return x, y

    def observe(self, x, y, draw_to=None):
        loss = F.cross_entropy(self.model(self.mixed(x, y, draw_to)[0]), self.mixed(x, y, draw_to)[1])
        if self.penalty is not None:
            loss = loss + self.penalty.penalty()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.buffer.add(x, y)
        return loss.item()

class GradientMemory:
    """Projects a gradient away from what earlier tasks need."""
    def __init__(self, model):
        self.model, self.rows = model, []

    def flat(self):
        return torch.cat([p.grad.flatten() for p in self.model.parameters()])

    def store(self, where):
        self.rows.append(self.flat().to(where))

    def project(self, where):
        current = self.flat().to(where)
        for row in self.rows:
            dot = torch.dot(current, row)
            if dot < 0:
                current = current - dot / row.dot(row) * row
        return current

    def write(self, vector):
        offset = 0
        for p in self.model.parameters():
            p.grad = vector[offset:offset + p.numel()].view_as(p)  # raises
            offset += p.numel()

    def overwrite(self, vector):
        for p, piece in zip(self.model.parameters(), vector.split([p.numel() for p in self.model.parameters()])):
            p.grad.copy_(piece.view_as(p))

def learner(cfg, loop=InnerLoop, late=False, **kwargs):
    model = FunctionalMLP(cfg)
    if late:
        made = loop(model, cfg, **kwargs)
        model.to(cfg.device)
        return made
    return loop(model.to(cfg.device), cfg, **kwargs)

def case_maml():
    cfg = MetaConfig()
    learner(cfg).outer_loss(EpisodeSampler(cfg).sample()).backward()

def case_maml_late_move():
    cfg = MetaConfig(device="cuda:2")
    learner(cfg, late=True).outer_loss(EpisodeSampler(cfg).sample()).backward()

def case_episode_labels():
    cfg = MetaConfig()
    learner(cfg).outer_loss(EpisodeSampler(cfg).sample(labels=False))

def case_scalar_rates():
    cfg = MetaConfig()
    loop = learner(cfg, ScalarRateLoop)
    loop.outer_loss(EpisodeSampler(cfg).sample()).backward()
    assert loop.lr["first.bias"].grad.device.type == "cpu"

def case_element_rates():
    cfg = MetaConfig(device="cuda:1")
    learner(cfg, ElementRateLoop).outer_loss(EpisodeSampler(cfg).sample())

def case_element_rates_like():
    cfg = MetaConfig(device="cuda:1")
    learner(cfg, ElementRateLoop, like=True).outer_loss(EpisodeSampler(cfg).sample()).backward()

def case_snapshot_before_move():
    cfg = MetaConfig()
    learner(cfg, SnapshotLoop, late=True).outer_loss(EpisodeSampler(cfg).sample())

def case_reptile():
    cfg = MetaConfig()
    reptile = learner(cfg, Reptile)
    reptile.move_towards(reptile.fast_weights(EpisodeSampler(cfg).sample()))

def case_reptile_late():
    cfg = MetaConfig()
    reptile = learner(cfg, Reptile, late=True)
    reptile.move_towards(reptile.fast_weights(EpisodeSampler(cfg).sample()))

def case_prototypes_added():
    cfg = MetaConfig()
    (x, y), (query, _) = EpisodeSampler(cfg).sample(labels=False)
    ProtoHead(FunctionalMLP(cfg).cuda(), cfg.ways).logits((x, y), query)

def case_prototypes_masked():
    cfg = MetaConfig()
    (x, y), (query, _) = EpisodeSampler(cfg).sample(labels=False)
    MaskedProtoHead(FunctionalMLP(cfg).cuda(), cfg.ways).logits((x, y), query).argmax(1).cpu().numpy()

def case_running_prototypes():
    cfg, head = MetaConfig(), RunningProtoHead(FunctionalMLP(MetaConfig()).cuda(), 3)
    episodes = EpisodeSampler(cfg)
    for keep_on in ("cpu", "cpu", None):
        head.observe(episodes.sample()[0], keep_on)
    head.classify(episodes.sample()[1][0])

def case_running_prototypes_partial():
    cfg, head = MetaConfig(ways=3), RunningProtoHead(FunctionalMLP(MetaConfig()).cuda(), 3)
    head.observe(EpisodeSampler(cfg).sample()[0], keep_on="cpu")
    (x, y), (query, _) = EpisodeSampler(cfg).sample()
    head.ways = 2
    head.observe((x, y))
    head.classify(query)

def tasks(cfg, count=2):
    episodes = EpisodeSampler(cfg)
    return [episodes.sample()[0] for _ in range(count)]

def case_fisher_resident():
    cfg = MetaConfig()
    model = FunctionalMLP(cfg).to(cfg.device)
    Fisher(model, store=cfg.device).estimate(tasks(cfg)).penalty().backward()

def case_fisher_stored():
    cfg = MetaConfig()
    fisher = Fisher(FunctionalMLP(cfg).to(cfg.device)).estimate(tasks(cfg))
    fisher.top()
    fisher.penalty()

def case_fisher_paged_replay():
    cfg = MetaConfig()
    model = FunctionalMLP(cfg).to(cfg.device)
    fisher = PagedFisher(model).estimate(tasks(cfg))
    trainer = ReplayTrainer(cfg, model, ReservoirBuffer(8, cfg, cfg.device), fisher)
    for x, y in tasks(cfg, 3):
        trainer.observe(x, y)

def case_path_integral_late():
    cfg = MetaConfig()
    model = FunctionalMLP(cfg)
    path = SynapticIntelligence(model)
    x, y = tasks(cfg)[0]
    F.cross_entropy(model.cuda()(x), y).backward()
    path.record()

def case_replay_default_buffer():
    cfg = MetaConfig()
    trainer = ReplayTrainer(cfg, FunctionalMLP(cfg).cuda(), ReservoirBuffer(4, cfg))
    for x, y in tasks(cfg, 3):
        trainer.observe(x, y)

def case_replay_drawn_over():
    cfg = MetaConfig(device="cuda:1")
    trainer = ReplayTrainer(cfg, FunctionalMLP(cfg).to(1), ReservoirBuffer(4, cfg))
    for x, y in tasks(cfg, 3):
        trainer.observe(x, y, draw_to=x.device)

def gradients(write, where):
    cfg = MetaConfig()
    memory = GradientMemory(FunctionalMLP(cfg).cuda())
    for x, y in tasks(cfg):
        memory.model.zero_grad()
        F.cross_entropy(memory.model(x), y).backward()
        memory.store(where)
    getattr(memory, write)(memory.project(where))

def case_projected_copied():
    gradients("overwrite", "cpu")

def case_projected_assigned():
    gradients("write", "cuda:3")
