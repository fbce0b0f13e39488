from collections import OrderedDict
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Callable, Dict, List, Optional, Tuple

import numpy as np
import torch
import torch.nn as nn

@dataclass
class EditParams:
    layers: List[int] = field(default_factory=lambda: [1, 2])
    rewrite_tmp: str = "blocks.{}.mlp.proj"
    mom2_weight: float = 5.0
    v_steps: int = 2
    v_lr: float = 0.1
    clamp: float = 4.0

@dataclass
class EditRequest:
    subject: List[int]
    target: int
    position: int = -1

class MLP(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.fc, self.proj = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        return self.proj(torch.relu(self.fc(x)))

class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.ln, self.mix, self.mlp = nn.LayerNorm(d), nn.Linear(d, d), MLP(d)

    def forward(self, x):
        h = self.ln(x)
        return x + self.mix(h.cumsum(1)) + self.mlp(h)

class GPT(nn.Module):
    def __init__(self, vocab=24, d=6, n=4):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.blocks = nn.ModuleList(Block(d) for _ in range(n))
        self.unembed = nn.Linear(d, vocab, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.unembed(x)

def send(args, device):
    return tuple(a.to(device) if torch.is_tensor(a) else a for a in args)

def dispatch(model, device_map: Dict[str, str]):
    for name, device in device_map.items():
        module = model.get_submodule(name).to(device)
        module.register_forward_pre_hook(lambda m, args, d=device: send(args, d))
    return model

def spread(n=4):
    torch.manual_seed(0)
    model = GPT(n=n)
    mapping = OrderedDict({"embed": "cuda:0", "unembed": "cuda:0"})
    mapping.update({f"blocks.{i}": f"cuda:{i % 4}" for i in range(n)})
    return dispatch(model, mapping)

class Trace(AbstractContextManager):
    def __init__(self, model, layer, retain_input=False, edit: Optional[Callable] = None, keep=None):
        self.input = self.output = None
        self.keep = keep or (lambda t: t.detach())

        def hook(module, args, output):
            self.input = self.keep(args[0]) if retain_input else None
            output = edit(output, layer) if edit is not None else output
            self.output = self.keep(output)
            return output
        self.handle = model.get_submodule(layer).register_forward_hook(hook)

    def __exit__(self, *exc):
        self.handle.remove()

class TraceDict(OrderedDict, AbstractContextManager):
    def __init__(self, model, layers, **kw):
        super().__init__()
        self.stack = ExitStack()
        for layer in layers:
            self[layer] = self.stack.enter_context(Trace(model, layer, **kw))

    def __exit__(self, *exc):
        self.stack.close()

class ActivationCache:
    def __init__(self, model, traces):
        self.model = model
        self.states = {k: t.output for k, t in traces.items()}

    def to(self, device):
        self.states = {k: v.to(device) for k, v in self.states.items()}
        return self

    def stacked(self, position=-1):
        return torch.stack([h[:, position] for h in self.states.values()])  # raises

    def logit_lens(self, name, tokens=None):
        weight = self.model.unembed.weight
        weight = weight if tokens is None else weight[torch.tensor(tokens)]
        return self.states[name] @ weight.t()  # raises

class SecondMoment:
    def __init__(self):
        self.count, self.mom2 = 0, None

    def add(self, a):
        a = a.reshape(-1, a.shape[-1])
        if self.mom2 is None:
            self.mom2 = a.new_zeros(a.shape[1], a.shape[1])
        self.count += len(a)
        self.mom2.addmm_(a.t(), a)  # raises

    def offload(self):
        self.mom2 = self.mom2.cpu()
        return self

    def moment(self):
        return self.mom2 / max(self.count, 1)

def collect(model, layer, batches, offload_each=False):
    stat = SecondMoment()
    for ids in batches:
        with torch.no_grad(), Trace(model, layer, retain_input=True) as tr:
            model(ids)
        stat.add(tr.input)
        if offload_each:
            stat.offload()
    return stat.offload()

class Editor:
    def __init__(self, model, params):
        self.model, self.params = model, params
        self.backup: Dict[str, torch.Tensor] = {}

    def module(self, layer):
        return self.model.get_submodule(self.params.rewrite_tmp.format(layer))

    def key(self, request, layer):
        with torch.no_grad(), Trace(self.model, self.params.rewrite_tmp.format(layer), retain_input=True) as tr:
            self.model(torch.tensor([request.subject]))
        return tr.input[0, request.position]

    def target(self, request, layer):
        weight = self.module(layer).weight
        delta = torch.zeros(weight.shape[0], requires_grad=True, device=weight.device)
        optimizer = torch.optim.Adam([delta], lr=self.params.v_lr)

        def edit(output, name):
            output = output.clone()
            output[:, request.position] += delta
            return output
        for _ in range(self.params.v_steps):
            with Trace(self.model, self.params.rewrite_tmp.format(layer), edit=edit):
                logits = self.model(torch.tensor([request.subject]))
            loss = -logits[0, -1].log_softmax(-1)[request.target] + 0.01 * delta.norm().to(logits.device)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return delta.detach()

    def apply(self, deltas: Dict[str, Tuple[torch.Tensor, torch.Tensor]]):
        with torch.no_grad():
            for name, (left, right) in deltas.items():
                w = self.model.get_submodule(name).weight
                self.backup.setdefault(name, w.detach().cpu().clone())
                w += torch.outer(left, right).reshape(w.shape)  # raises

    def restore(self):
        with torch.no_grad():
            for name, saved in self.backup.items():
                self.model.get_submodule(name).weight[...] = saved

    def drift(self):
        return {n: torch.dist(self.model.get_submodule(n).weight, w).item() for n, w in self.backup.items()}  # raises

class ROME(Editor):
    def __init__(self, model, params, stats):
        super().__init__(model, params)
        self.stats = stats

    def inverse_covariance(self, layer):
        cov = self.stats[layer].moment()
        return torch.linalg.inv(cov + 0.1 * torch.eye(len(cov))).to(self.module(layer).weight.device)

    def left(self, request, layer):
        return nn.functional.normalize(self.inverse_covariance(layer) @ self.key(request, layer), dim=0)

    def deltas(self, request):
        layer = self.params.layers[0]
        u, v = self.left(request, layer), self.target(request, layer)
        return {self.params.rewrite_tmp.format(layer): (v, u)}

class MEMIT(ROME):
    def deltas(self, request):
        out, last = {}, self.params.layers[-1]
        goal = self.target(request, last)
        for i, layer in enumerate(self.params.layers):
            key = self.key(request, layer)
            cov = self.stats[layer].moment().to(key.device) * self.params.mom2_weight
            adjusted = torch.linalg.solve(cov + torch.outer(key, key) + torch.eye(len(key)).to(cov), key)
            out[self.params.rewrite_tmp.format(layer)] = (goal / (len(self.params.layers) - i), adjusted)
        return out

class NullSpace(MEMIT):
    def __init__(self, model, params, stats, host_cache=True):
        super().__init__(model, params, stats)
        dim = self.module(params.layers[0]).weight.shape[1]
        self.projectors = torch.eye(dim).expand(len(params.layers), dim, dim).clone()
        self.cache_c = torch.zeros(len(params.layers), dim, dim)
        self.host_cache = host_cache

    def remember(self, request):
        for i, layer in enumerate(self.params.layers):
            k = self.key(request, layer)[:, None]
            outer = (k @ k.t()).cpu() if self.host_cache else k @ k.t()
            self.cache_c[i] += outer  # raises

    def projected(self, request, layer):
        k = self.key(request, layer)
        return torch.mv(self.projectors[self.params.layers.index(layer)], k)  # raises

class CausalTracer:
    def __init__(self, model, noise=0.3):
        self.model, self.noise = model, noise
        self.prng = np.random.RandomState(1)

    def corrupt(self, x, layer, span):
        b, e = span
        drawn = torch.from_numpy(self.prng.randn(x.shape[0] - 1, e - b, x.shape[2])).float()
        x = x.clone()
        x[1:, b:e] += self.noise * drawn.to(x.device)
        return x

    def clean_states(self, ids, layers, keep=None):
        with torch.no_grad(), TraceDict(self.model, layers, keep=keep) as td:
            self.model(ids)
        return {k: t.output for k, t in td.items()}

    def restore(self, x, layer, states, tokens):
        if isinstance(tokens, slice):
            x[1:, tokens] = states[layer][0, tokens]
        else:
            x[1:, tokens] = states[layer][0, tokens]  # raises
        return x

    def run(self, ids, span, layers, tokens, states=None):
        states = states or self.clean_states(ids, layers)
        with torch.no_grad(), ExitStack() as stack:
            stack.enter_context(Trace(self.model, "embed", edit=partial(self.corrupt, span=span)))
            stack.enter_context(TraceDict(self.model, layers, edit=partial(self.restore, states=states, tokens=tokens)))
            return self.model(ids)[:, -1].softmax(-1).mean(0).argmax().item()

class Steering:
    def __init__(self, model, layers):
        self.model, self.layers = model, layers
        self.directions: Dict[str, torch.Tensor] = {}

    def fit(self, positive, negative, share=False):
        tracer = CausalTracer(self.model)
        up, down = tracer.clean_states(positive, self.layers), tracer.clean_states(negative, self.layers)
        for name in self.layers:
            source = self.layers[0] if share else name
            diff = up[source].mean((0, 1)) - down[source].mean((0, 1))
            self.directions[name] = diff / diff.norm()
        return self

    def edit(self, output, layer, strength):
        return output + strength * self.directions[layer]  # raises

    def generate(self, ids, strength=torch.tensor(2.0), steps=2):
        for _ in range(steps):
            with torch.no_grad(), TraceDict(self.model, self.layers, edit=partial(self.edit, strength=strength)):
                nxt = self.model(ids)[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, nxt.to(ids.device)], 1)
        return ids

class GraceLayer(nn.Module):
    def __init__(self, layer, epsilon=1.0):
        super().__init__()
        self.layer, self.epsilon = layer, epsilon
        self.keys, self.values, self.radii = None, None, []

    def add(self, key, value):
        key, value = key.detach()[None], value.detach()[None]
        self.keys = key if self.keys is None else torch.cat([self.keys, key])
        self.values = value if self.values is None else torch.cat([self.values, value])
        self.radii.append(self.epsilon)

    def forward(self, x):
        out = self.layer(x)
        if self.keys is None:
            return out
        near, which = torch.cdist(x[:, -1], self.keys).min(1)
        hit = near <= torch.tensor(self.radii)[which]  # raises
        return torch.where(hit[:, None, None], self.values[which][:, None], out)

def prompts(n=2):
    return torch.arange(10).view(2, 5)[:n]

def statistics(model, params):
    return {i: collect(model, params.rewrite_tmp.format(i), [prompts(), prompts() + 3]) for i in params.layers}

def case_rome_edit_and_restore():
    model, params = spread(), EditParams()
    editor = ROME(model, params, statistics(model, params))
    editor.apply(editor.deltas(EditRequest([1, 2, 3], 7)))
    editor.restore()

def case_memit_same_target_everywhere():
    model, params = spread(), EditParams()
    editor = MEMIT(model, params, statistics(model, params))
    editor.apply(editor.deltas(EditRequest([1, 2, 3], 7)))

def case_drift_from_backup():
    model, params = spread(), EditParams()
    editor = ROME(model, params, statistics(model, params))
    editor.apply(editor.deltas(EditRequest([4, 5], 3)))
    return editor.drift()

def case_moments_offloaded_between():
    collect(spread(), "blocks.1.mlp.fc", [prompts(), prompts() + 2], offload_each=True)

def case_moments_first_offload():
    return collect(spread(), "blocks.1.mlp.fc", [prompts()], offload_each=True).moment().trace().item()

def case_null_space_cache_on_host():
    model, params = spread(), EditParams()
    NullSpace(model, params, statistics(model, params)).remember(EditRequest([1, 2], 3))

def case_null_space_cache_direct():
    model, params = spread(), EditParams()
    NullSpace(model, params, statistics(model, params), host_cache=False).remember(EditRequest([1, 2], 3))

def case_null_space_projection():
    model, params = spread(), EditParams()
    NullSpace(model, params, {}).projected(EditRequest([1, 2], 3), 2)

def case_trace_fresh_states():
    CausalTracer(spread()).run(prompts(), (1, 3), ["blocks.1", "blocks.2"], [1, 2])

def case_trace_saved_states_by_list():
    tracer = CausalTracer(spread())
    saved = tracer.clean_states(prompts(), ["blocks.1", "blocks.2"], keep=lambda t: t.detach().cpu())
    tracer.run(prompts(), (1, 3), ["blocks.1", "blocks.2"], [1, 2], saved)

def case_trace_saved_states_by_slice():
    tracer = CausalTracer(spread())
    saved = tracer.clean_states(prompts(), ["blocks.1", "blocks.2"], keep=lambda t: t.detach().cpu())
    tracer.run(prompts(), (1, 3), ["blocks.1", "blocks.2"], slice(1, 3), saved)

def traced_cache(names):
    with torch.no_grad(), TraceDict(model := spread(), names) as td:
        model(prompts())
    return ActivationCache(model, td)

def case_cache_stack_spread():
    traced_cache(["blocks.0", "blocks.3"]).stacked()

def case_cache_stack_gathered():
    cache = traced_cache(["blocks.0", "blocks.3"])
    return cache.to("cpu").stacked().numpy()

def case_lens_last_block():
    traced_cache(["blocks.0", "blocks.3"]).logit_lens("blocks.3")

def case_lens_first_block_some_tokens():
    return traced_cache(["blocks.0", "blocks.3"]).logit_lens("blocks.0", [2, 5, 7]).tolist()

def case_steer_own_direction():
    Steering(spread(), ["blocks.1", "blocks.2"]).fit(prompts(), prompts() + 5).generate(prompts())

def case_steer_shared_direction():
    Steering(spread(), ["blocks.1", "blocks.2"]).fit(prompts(), prompts() + 5, share=True).generate(prompts())

def grace(edits):
    model = spread()
    wrapped = model.blocks[2].mlp.fc = GraceLayer(model.blocks[2].mlp.fc)
    for i in range(edits):
        with torch.no_grad(), Trace(model, "blocks.2.mlp.fc.layer", retain_input=True) as tr:
            model(prompts() + i)
        wrapped.add(tr.input[0, -1], tr.output[0, -1])
    return model

def case_grace_without_edits():
    grace(0)(prompts())

def case_grace_lookup():
    grace(1)(prompts())
