"""A small model server: registry, batching, workers, caches, sessions, post-processing and health checks."""
import io
import itertools
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence

Batch = namedtuple("Batch", "tokens lengths mask")
VOCAB, DIM, CLASSES = 12, 8, 5


@dataclass
class Request:
    uid: str
    tokens: List[int]
    bias: Optional[torch.Tensor] = None
    session: Optional[str] = None


@dataclass
class Prompt:
    tokens: torch.Tensor
    bias: Optional[torch.Tensor] = None


@dataclass
class ServerConfig:
    model: str = "classifier"
    devices: Sequence[str] = ("cuda:0",)
    max_batch: int = 4
    warmup: bool = True


def move(item: Any, device) -> Any:
    if torch.is_tensor(item):
        return item.to(device)
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        return type(item)(*(move(each, device) for each in item))
    if isinstance(item, (list, tuple)):
        return type(item)(move(each, device) for each in item)
    if isinstance(item, dict):
        return {key: move(value, device) for key, value in item.items()}
    return item


def move_fields(item: Any, device) -> Any:
    if is_dataclass(item):
        return replace(item, **{f.name: move(getattr(item, f.name), device) for f in fields(item)})
    return move(item, device)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.head = nn.Linear(DIM, CLASSES)

    def pool(self, batch: Batch) -> torch.Tensor:
        hidden = self.embed(batch.tokens) * batch.mask.unsqueeze(-1)
        return hidden.sum(1) / batch.lengths.clamp(min=1).unsqueeze(-1)

    def forward(self, batch: Batch) -> torch.Tensor:
        return self.head(self.pool(batch))


class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.cell = nn.GRUCell(DIM, DIM)
        self.out = nn.Linear(DIM, VOCAB)

    def begin(self, batch: int) -> torch.Tensor:
        return self.out.weight.new_zeros(batch, DIM)

    def step(self, token: torch.Tensor, state: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        state = self.cell(self.embed(token), state)  # raises
        return self.out(state), state


class Registry:
    """Factories of models, and what was made of them."""

    def __init__(self, key: Callable[[str, str], Any] = lambda name, device: (name, device)):
        self.factories: Dict[str, Callable[[], nn.Module]] = {}
        self.live: Dict[Any, nn.Module] = {}
        self.key = key

    def add(self, name: str, factory: Callable[[], nn.Module]) -> "Registry":
        self.factories[name] = factory
        return self

    def get(self, name: str, device: str) -> nn.Module:
        key = self.key(name, device)
        if key not in self.live:
            self.live[key] = self.factories[name]().to(device).eval()
        return self.live[key]

    def embed(self, name: str, device: str, batch: Batch) -> torch.Tensor:
        return self.get(name, device).pool(batch)


def default_registry(**kwargs) -> Registry:
    return Registry(**kwargs).add("classifier", Classifier).add("speaker", Speaker)


class Batcher:
    def __init__(self, limit: int):
        self.limit = limit

    def chunks(self, requests: Sequence[Request]):
        iterator = iter(requests)
        while True:
            group = list(itertools.islice(iterator, self.limit))
            if not group:
                return
            yield group

    def collate(self, group: Sequence[Request]) -> Batch:
        tokens = pad_sequence([torch.tensor(each.tokens) for each in group], batch_first=True)
        lengths = torch.tensor([len(each.tokens) for each in group])
        return Batch(tokens, lengths, torch.arange(tokens.shape[1]) < lengths.unsqueeze(1))


class Stage:
    """A step of the post-processing."""

    def __call__(self, scores: torch.Tensor) -> Any:
        raise NotImplementedError


class Calibrate(Stage):
    def __init__(self, temperature: float, bias: Optional[Sequence[float]] = None):
        self.temperature = torch.tensor(temperature)
        self.bias = None if bias is None else torch.tensor(bias)

    def __call__(self, scores):
        scores = scores / self.temperature
        return scores if self.bias is None else scores + self.bias  # raises


class TopNames(Stage):
    names = np.array(["ant", "bee", "cat", "dog", "elk"])

    def __init__(self, k: int, fast: bool = False):
        self.k, self.fast = k, fast

    def __call__(self, scores):
        best = scores.topk(self.k).indices
        if self.fast:
            return self.names[best]  # raises
        return self.names[best.cpu()]


class Worker:
    def __init__(self, config: ServerConfig, device: str, registry: Registry, stages: Sequence[Stage] = ()):
        self.config, self.device, self.stages = config, device, list(stages)
        self.model = registry.get(config.model, device)
        self.batcher = Batcher(config.max_batch)
        self.handled = 0
        if config.warmup and config.model == "classifier":
            self.infer(self.batcher.collate([Request("warm", [1, 2])]))

    @torch.no_grad()
    def infer(self, batch: Batch) -> torch.Tensor:
        return self.model(move(batch, self.device))

    def scores(self, requests: Sequence[Request]) -> torch.Tensor:
        parts = [self.infer(self.batcher.collate(group)) for group in self.batcher.chunks(requests)]
        self.handled += len(requests)
        return torch.cat(parts)

    def handle(self, requests: Sequence[Request]) -> Any:
        result: Any = self.scores(requests)
        for stage in self.stages:
            result = stage(result)
        return result


class ResultCache:
    """The last answers."""

    def __init__(self, size: int = 8):
        self.size = size
        self.rows: "OrderedDict[Tuple[int, ...], torch.Tensor]" = OrderedDict()

    def put(self, request: Request, row: torch.Tensor) -> None:
        self.rows[tuple(request.tokens)] = row.detach().cpu()
        while len(self.rows) > self.size:
            self.rows.popitem(last=False)

    def get(self, request: Request) -> Optional[torch.Tensor]:
        return self.rows.get(tuple(request.tokens))


class CachedServer:
    def __init__(self, worker: Worker, cache: ResultCache):
        self.worker, self.cache = worker, cache

    def answer(self, requests: Sequence[Request]) -> torch.Tensor:
        missing = [each for each in requests if self.cache.get(each) is None]
        fresh = dict(zip((each.uid for each in missing), self.worker.scores(missing))) if missing else {}
        for each in missing:
            self.cache.put(each, fresh[each.uid])
        rows = [fresh[each.uid] if each.uid in fresh else self.cache.get(each) for each in requests]
        return torch.stack(rows)  # raises


class Pool:
    """Workers on several GPUs, in turn."""

    def __init__(self, config: ServerConfig, registry: Optional[Registry] = None):
        registry = registry or default_registry()
        self.workers = [Worker(config, device, registry) for device in config.devices]

    def spread(self, requests: Sequence[Request]) -> List[torch.Tensor]:
        count = len(self.workers)
        return [worker.scores(requests[k::count]) for k, worker in enumerate(self.workers)]

    def run(self, requests: Sequence[Request], sink: Optional[str] = None) -> torch.Tensor:
        parts = self.spread(requests)
        return torch.cat(parts if sink is None else move(parts, sink))  # raises

    def vote(self, requests: Sequence[Request]) -> torch.Tensor:
        total = None
        for worker in self.workers:
            share = worker.scores(requests).softmax(-1)
            total = share if total is None else total + share  # raises
        return total.argmax(-1)


class Sessions:
    def __init__(self, model: Callable[[str], Speaker], follow: bool = True):
        self.model, self.follow = model, follow
        self.states: Dict[str, torch.Tensor] = {}

    def say(self, session: str, token: int, device: str) -> int:
        model = self.model(device)
        state = self.states.get(session)
        if state is None:
            state = model.begin(1)
        elif self.follow:
            state = state.to(model.out.weight.device)
        logits, self.states[session] = model.step(torch.tensor([token], device=device), state)
        return int(logits.argmax())


class Decoder:
    def __init__(self, model: Speaker, device: str):
        self.model, self.device = model, device
        self.allowed = torch.ones(VOCAB, dtype=torch.bool)

    def pick(self, logits: torch.Tensor, ban: Sequence[int] = ()) -> torch.Tensor:
        allowed = self.allowed.clone()
        allowed[list(ban)] = False
        logits[:, ~allowed] = float("-inf")
        return logits.argmax(-1)

    @torch.no_grad()
    def run(self, prompt: Prompt, steps: int) -> List[List[int]]:
        token, state = prompt.tokens[:, -1], self.model.begin(len(prompt.tokens))
        made = []
        for _ in range(steps):
            logits, state = self.model.step(token, state)
            if prompt.bias is not None:
                logits = torch.add(logits, prompt.bias, alpha=0.5)  # raises
            token = self.pick(logits, ban=(2,))
            made.append(token.tolist())
        return made


class HealthCheck:
    """Compares the answers to a golden request with what they were at the start."""

    def __init__(self, worker: Worker):
        self.worker = worker
        self.request = [Request("golden", [3, 4, 5])]
        self.golden = worker.scores(self.request).cpu()
        self.bad = torch.zeros((), dtype=torch.long)

    def strict(self) -> bool:
        return torch.allclose(self.worker.scores(self.request), self.golden, atol=1e-4)  # raises

    def exact(self) -> bool:
        return bool((self.worker.scores(self.request).cpu() == self.golden).all())

    def finite(self) -> int:
        scores = self.worker.scores(self.request)
        self.bad += (~torch.isfinite(scores)).sum()  # raises
        return int(self.bad)

    def finite_total(self) -> int:
        self.bad = self.bad + (~torch.isfinite(self.worker.scores(self.request))).sum()
        return int(self.bad)


class Features:
    """Features that come with a checkpoint: the weights and the mean of the inputs."""

    def __init__(self, device: str):
        self.device = device
        self.model = nn.Linear(DIM, CLASSES).to(device)
        self.mean = torch.zeros(DIM, device=device)

    def dump(self) -> bytes:
        buffer = io.BytesIO()
        torch.save({"model": self.model.state_dict(), "mean": self.mean}, buffer)
        return buffer.getvalue()

    def reload(self, blob: bytes, map_location: Optional[str] = None) -> "Features":
        state = torch.load(io.BytesIO(blob), map_location=map_location)
        self.model.load_state_dict(state["model"])
        self.mean = state["mean"]
        return self

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x - self.mean)  # raises


def requests(n: int = 6) -> List[Request]:
    return [Request(f"r{k}", [2 + (k + j) % 9 for j in range(1 + k % 3)]) for k in range(n)]


def worker(*stages: Stage, device: str = "cuda:0") -> Worker:
    return Worker(ServerConfig(), device, default_registry(), stages)


def prompt(device: Optional[str] = None) -> Prompt:
    return Prompt(torch.tensor([[3, 4], [5, 6]], device=device), torch.zeros(VOCAB))


def case_plain_worker():
    return worker(Calibrate(1.5), TopNames(2)).handle(requests())


def case_calibrated_bias():
    return worker(Calibrate(1.5, [0.0] * CLASSES)).handle(requests())


def case_fast_names():
    return worker(Calibrate(2.0), TopNames(1, fast=True), device="cuda:2").handle(requests(3))


def case_registry_two_devices():
    registry = default_registry()
    batch = Batcher(4).collate(requests(3))
    return [registry.embed("classifier", device, move(batch, device)) for device in ("cuda:0", "cuda:1")]


def case_registry_shared_entry():
    registry = default_registry(key=lambda name, device: name)
    config = ServerConfig(model="speaker", devices=("cuda:0", "cuda:1"), warmup=False)
    pool = Pool(config, registry)
    models = dict(zip(config.devices, (each.model for each in pool.workers)))
    return [Sessions(models.get).say("s", 3, device) for device in config.devices]


def case_cached_server_mixed():
    server = CachedServer(worker(), ResultCache())
    server.answer(requests(2))
    return server.answer(requests(3))


def case_cached_server_all_known():
    server = CachedServer(worker(), ResultCache())
    server.answer(requests(3))
    return server.answer(requests(3))


def case_pool_run_to_sink():
    return Pool(ServerConfig(devices=("cuda:0", "cuda:1"))).run(requests(), sink="cpu")


def case_pool_run_without_sink():
    return Pool(ServerConfig(devices=("cuda:0", "cuda:1"))).run(requests())


def case_pool_vote():
    return Pool(ServerConfig(devices=("cuda:2", "cuda:3"))).vote(requests(4))


def case_session_follows():
    registry = default_registry()
    sessions = Sessions(lambda device: registry.get("speaker", device))
    return [sessions.say("a", 3, device) for device in ("cuda:0", "cuda:1", "cuda:0")]


def case_decode_without_bias():
    found = Decoder(Speaker().cuda(), "cuda")
    return found.run(replace(prompt("cuda"), bias=None), 3)


def case_decode_dataclass_moved():
    found = Decoder(Speaker().cuda(), "cuda")
    return found.run(move_fields(prompt(), "cuda"), 3)


def case_decode_bias_left():
    found = Decoder(Speaker().cuda(), "cuda")
    return found.run(move(prompt("cuda"), "cuda"), 3)


def case_health_exact_and_total():
    check = HealthCheck(worker(device="cuda:1"))
    return check.exact(), check.finite_total(), check.finite_total()


def case_health_strict():
    return HealthCheck(worker(device="cuda:1")).strict()


def case_health_counter():
    return HealthCheck(worker()).finite()


def case_features_mapped():
    blob = Features("cuda:1").dump()
    return Features("cuda:0").reload(blob, map_location="cuda:0")(torch.randn(2, DIM).cuda())


def case_features_of_other_gpu():
    blob = Features("cuda:1").dump()
    return Features("cuda:0").reload(blob)(torch.randn(2, DIM).cuda())
