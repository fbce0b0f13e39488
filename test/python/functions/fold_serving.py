"""Protein embedding search, served from several GPUs: sharded encoder, shared index, batching front end."""
import asyncio
import heapq
import threading
import weakref
from collections import ChainMap, namedtuple
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, wraps
from queue import Empty, Queue
from types import SimpleNamespace
from typing import Iterable, List, Mapping, Optional, Sequence, Union

import torch
import torch.nn as nn
import torch.nn.functional as F

ALPHABET = "ACDEFGHIKLMNPQRSTVWY"
PAD, MASK = 20, 21
Hit = namedtuple("Hit", ["score", "name"])


def gpus() -> List[torch.device]:
    return [torch.device(f"cuda:{i}") for i in range(torch.cuda.device_count())]


def tokenize(seqs: Sequence[str], device=None):
    width = max(map(len, seqs))
    ids = torch.full((len(seqs), width), PAD, dtype=torch.long)
    for row, seq in enumerate(seqs):
        ids[row, :len(seq)] = torch.tensor([ALPHABET.index(c) for c in seq])
    return ids if device is None else ids.to(device)


class RotaryEmbedding(nn.Module):
    def __init__(self, dim: int, cache: bool = True):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / (100 ** (torch.arange(0, dim, 2).float() / dim)))
        self.cache = cache
        self._len_cached, self._cos, self._sin = 0, None, None

    def _tables(self, n, device):
        if not self.cache or n > self._len_cached or self._cos.device != device:
            t = torch.arange(n, device=device).type_as(self.inv_freq)
            freqs = torch.outer(t, self.inv_freq)
            emb = torch.cat((freqs, freqs), dim=-1)
            self._len_cached, self._cos, self._sin = n, emb.cos(), emb.sin()
        return self._cos[:n], self._sin[:n]

    def forward(self, x):
        cos, sin = self._tables(x.shape[-2], x.device)
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-b, a), -1) * sin


class LegacyRotary(RotaryEmbedding):
    """As in the first release: the cache knows its length only."""

    def _tables(self, n, device):
        if n > self._len_cached:
            freqs = torch.outer(torch.arange(n, device=device).float(), self.inv_freq)
            emb = torch.cat((freqs, freqs), dim=-1)
            self._len_cached, self._cos, self._sin = n, emb.cos(), emb.sin()
        return self._cos[:n], self._sin[:n]

    def forward(self, x):
        cos, sin = self._tables(x.shape[-2], x.device)
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-b, a), -1) * sin  # raises


class Layer(nn.Module):
    def __init__(self, dim, rotary=RotaryEmbedding):
        super().__init__()
        self.rot = rotary(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.ff = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, padding=None):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)  # raises
        w = self.rot(q) @ self.rot(k).transpose(1, 2)
        if padding is not None:
            w = w.masked_fill(padding[:, None, :], float("-inf"))
        return x + self.ff(w.softmax(-1) @ v)


class ProteinEncoder(nn.Module):
    def __init__(self, dim=8, depth=4, rotary=RotaryEmbedding):
        super().__init__()
        self.embed = nn.Embedding(22, dim, padding_idx=PAD)
        self.layers = nn.ModuleList([Layer(dim, rotary) for _ in range(depth)])
        self.final = nn.LayerNorm(dim)

    def forward(self, ids):
        padding = ids.eq(PAD)
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, padding)
        return pool(self.final(x), padding)


def pool(x, padding):
    keep = (~padding).unsqueeze(-1).type_as(x)
    return F.normalize((x * keep).sum(1) / keep.sum(1), dim=-1)


class ShardedEncoder(ProteinEncoder):
    """Spreads the layers over the devices in equal parts."""

    def shard(self, devices: Sequence[torch.device]):
        self.devices = list(devices)
        per = -(-len(self.layers) // len(self.devices))
        self.plan = {i: self.devices[i // per] for i in range(len(self.layers))}
        self.embed.to(self.devices[0])
        self.final.to(self.devices[-1])
        for i, layer in enumerate(self.layers):
            layer.to(self.plan[i])
        return self

    def forward(self, ids):
        padding = ids.eq(PAD)
        x = self.embed(ids)
        for i, layer in enumerate(self.layers):
            dev = self.plan[i]
            x = layer(x.to(dev), padding.to(dev))
        return self.pooled(x, padding)

    def pooled(self, x, padding):
        return pool(self.final(x), padding.to(x.device))


class ShardedEncoderNoHop(ShardedEncoder):
    def forward(self, ids):
        padding = ids.eq(PAD)
        x = self.embed(ids)
        for i, layer in enumerate(self.layers):
            x = layer(x, padding if x.device == padding.device else None)
        return self.pooled(x, padding)


SEQS = ["ACDEF", "GHIK", "LMNPQRS", "TVWY"]


def case_sharded_over_four():
    enc = ShardedEncoder().shard(gpus()).eval()
    with torch.inference_mode():
        return enc(tokenize(SEQS, enc.devices[0])).device.index


def case_sharded_no_hop_between_parts():
    enc = ShardedEncoderNoHop().shard(gpus()[:2]).eval()
    with torch.inference_mode():
        return enc(tokenize(SEQS, enc.devices[0])).device.index


def case_sharded_no_hop_single_part():
    enc = ShardedEncoderNoHop(depth=2).shard(gpus()[3:]).eval()
    with torch.inference_mode():
        return enc(tokenize(SEQS, "cuda:3")).device.index


def case_legacy_rotary_after_moving_replica():
    enc = ProteinEncoder(depth=1, rotary=LegacyRotary).eval().cuda(0)
    with torch.no_grad():
        here = enc(tokenize(SEQS).cuda(0)).cpu()
        enc.cuda(1)
        there = enc(tokenize(SEQS[:2]).cuda(1)).cpu()
    return here[:2] - there


def case_rotary_cache_follows():
    enc = ProteinEncoder(depth=1).eval().cuda(0)
    with torch.no_grad():
        here = enc(tokenize(SEQS).cuda(0)).cpu()
        enc.cuda(1)
        there = enc(tokenize(SEQS).cuda(1)).cpu()
    return (here - there).abs().max().item()


# ------------------------------------------------------------------------------------------------------------

class FlatIndex:
    def __init__(self, dim, device="cpu", normalize=False):
        self.vectors = torch.empty(0, dim, device=device)
        self.names: List[str] = []
        self.normalize = normalize

    def __len__(self):
        return len(self.names)

    @property
    def device(self):
        return self.vectors.device

    def add(self, names, vectors):
        if self.normalize:
            vectors = F.normalize(vectors, dim=-1)
        self.vectors = torch.cat([self.vectors, vectors.to(self.device)])
        self.names.extend(names)
        return self

    def to(self, device):
        moved = FlatIndex(self.vectors.shape[1], device, self.normalize)
        return moved.add(self.names, self.vectors)

    def search(self, queries, k=2):
        scores = queries @ self.vectors.T  # raises
        top = scores.topk(min(k, len(self)), dim=-1)
        return [[Hit(s, self.names[i]) for s, i in zip(sr, ir)] for sr, ir in zip(top.values.tolist(), top.indices.tolist())]


class ShardedIndex:
    def __init__(self, shards: Sequence[FlatIndex]):
        self.shards = list(shards)

    @classmethod
    def build(cls, names, vectors, devices):
        parts = vectors.chunk(len(devices))
        start, shards = 0, []
        for part, dev in zip(parts, devices):
            shards.append(FlatIndex(vectors.shape[1], dev).add(names[start:start + len(part)], part))
            start += len(part)
        return cls(shards)

    def search(self, queries, k=2):
        with ThreadPoolExecutor(len(self.shards)) as pool_:
            partial = list(pool_.map(lambda s: s.search(queries.to(s.device), k), self.shards))
        return [heapq.nlargest(k, (h for p in partial for h in p[row])) for row in range(len(queries))]

    def scores(self, queries, gather: Optional[torch.device] = None):
        out = [queries.to(s.device) @ s.vectors.T for s in self.shards]
        if gather is not None:
            out = [o.to(gather) for o in out]
        return torch.cat(out, dim=1)  # raises


def database(n=8, dim=8, device=None):
    g = torch.Generator().manual_seed(1)
    return [f"P{i:05d}" for i in range(n)], F.normalize(torch.randn(n, dim, generator=g).to(device or "cpu"), dim=-1)


def case_index_moved_result_dropped():
    enc = ProteinEncoder(depth=1).cuda().eval()
    index = FlatIndex(8, normalize=True).add(*database())
    index.to("cuda")
    with torch.no_grad():
        return index.search(enc(tokenize(SEQS, "cuda")))


def case_index_moved_result_kept():
    enc = ProteinEncoder(depth=1).cuda().eval()
    index = FlatIndex(8, normalize=True).add(*database()).to("cuda:0")
    with torch.no_grad():
        return index.search(enc(tokenize(SEQS, "cuda")))[0][0].name


def case_sharded_index_scores():
    names, vectors = database()
    index = ShardedIndex.build(names, vectors, gpus())
    queries = vectors[:2].cuda()
    hits = index.search(queries)
    return hits[0][0].name, index.scores(queries).argmax(1)


def case_sharded_index_scores_gathered():
    names, vectors = database(6, device="cuda:2")
    index = ShardedIndex.build(names, vectors, gpus()[:3])
    best = index.scores(vectors[:2], gather=vectors.device).argmax(dim=1)
    return [names[i] for i in best]


# ------------------------------------------------------------------------------------------------------------

def on_device(fn):
    """Moves tensor arguments to the device of the worker."""

    @wraps(fn)
    def inner(self, *args, **kwargs):
        args = [a.to(self.device) if isinstance(a, torch.Tensor) else a for a in args]
        return fn(self, *args, **kwargs)

    return inner


class Worker:
    registry = weakref.WeakSet()

    def __init__(self, device, defaults: Mapping = ()):
        self.device = torch.device(device)
        self.settings = SimpleNamespace(**ChainMap(dict(defaults), {"temperature": 1.0, "bias": None}))
        Worker.registry.add(self)

    @cached_property
    def model(self):
        return ProteinEncoder(depth=1).to(self.device).eval()

    @on_device
    @torch.no_grad()
    def embed(self, ids):
        return self.model(ids)

    @on_device
    @torch.no_grad()
    def score(self, ids, target, bias=None):
        sim = self.model(ids) @ target.T / self.settings.temperature
        return sim if bias is None else sim + bias  # raises


class WorkerPool:
    def __init__(self, devices: Iterable[Union[str, torch.device]]):
        self.workers = [Worker(d, {"temperature": 0.5}) for d in devices]
        self.jobs, self.results = Queue(), {}

    def submit(self, key, seqs):
        self.jobs.put((key, tokenize(seqs)))

    def _run(self, worker):
        while True:
            try:
                key, ids = self.jobs.get_nowait()
            except Empty:
                return
            self.results[key] = worker.embed(ids)

    def drain(self, collect=lambda r: r):
        threads = [threading.Thread(target=self._run, args=(w,)) for w in self.workers]
        [t.start() for t in threads]
        [t.join() for t in threads]
        return {k: collect(v) for k, v in sorted(self.results.items())}


def case_pool_collects_to_host():
    pool_ = WorkerPool(gpus())
    for i, seq in enumerate(SEQS * 2):
        pool_.submit(i, [seq])
    return torch.cat(list(pool_.drain(torch.Tensor.cpu).values())).numpy().shape


def case_worker_keyword_bias():
    worker = Worker("cuda:1")
    _, vectors = database(3)
    prior = torch.tensor([0.1, 0.0, -0.1])
    plain = worker.score(tokenize(SEQS), vectors)
    return plain.shape, worker.score(tokenize(SEQS), vectors, bias=prior).argmax(1).tolist()


async def _ask(worker, seq, lock, out):
    async with lock:
        out.append(worker.embed(tokenize([seq])))
    await asyncio.sleep(0)


def case_async_front_end_two_workers():
    async def main():
        workers, lock, out = [Worker("cuda:0"), Worker("cuda:1")], asyncio.Lock(), []
        await asyncio.gather(*(_ask(workers[i % 2], s, lock, out) for i, s in enumerate(SEQS)))
        return out

    answers = asyncio.run(main())
    query, rest = answers[0], answers[1:]
    return max(float(F.cosine_similarity(query, r)) for r in rest)  # raises
