import math
from collections import defaultdict
from dataclasses import dataclass, field, fields
from typing import Dict, List, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

IGNORE = -100
RESPONSE_ID = 5

@dataclass
class TuneConfig:
    vocab: int = 32
    dim: int = 8
    rank: int = 2
    alpha: float = 4.0
    n_virtual: int = 3
    beta: float = 0.1
    targets: List[str] = field(default_factory=lambda: ["q_proj", "v_proj"])
    device: str = "cuda:0"

def prepare(data, device):
    if torch.is_tensor(data):
        return data.to(device)
    if isinstance(data, dict):
        return type(data)({k: prepare(v, device) for k, v in data.items()})
    if isinstance(data, (list, tuple)):
        return type(data)(prepare(v, device) for v in data)
    return data

class InstructionCollator:
    def __init__(self, pad_id=0, response_id=RESPONSE_ID):
        self.pad_id, self.response_id = pad_id, response_id

    def _labels(self, ids):
        labels = ids.clone()
        starts = (ids == self.response_id).nonzero()
        labels[: int(starts[0]) + 1] = IGNORE
        return labels

    def __call__(self, features):
        ids = [torch.tensor(f["input_ids"]) for f in features]
        labels = [self._labels(i) for i in ids]
        pad = nn.utils.rnn.pad_sequence
        batch = {
            "input_ids": pad(ids, batch_first=True, padding_value=self.pad_id),
            "labels": pad(labels, batch_first=True, padding_value=IGNORE),
        }
        batch["attention_mask"] = (batch["input_ids"] != self.pad_id).long()
        return batch

def sample_features(n=3):
    return [{"input_ids": [7, 8, RESPONSE_ID] + [9 + j for j in range(2 + i)]} for i in range(n)]

class Rotary(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / (100 ** (torch.arange(0, dim, 2).float() / dim)))
        self._cached_len = 0
        self._cos = self._sin = None

    def tables(self, length):
        if length > self._cached_len:
            t = torch.arange(length, device=self.inv_freq.device).float()
            angles = torch.outer(t, self.inv_freq).repeat(1, 2)
            self._cos, self._sin = angles.cos(), angles.sin()
            self._cached_len = length
        return self._cos[:length], self._sin[:length]

    def forward(self, x):
        cos, sin = self.tables(x.shape[1])
        a, b = x.chunk(2, dim=-1)
        rotated = torch.cat((-b, a), dim=-1)
        return x * cos + rotated * sin  # raises

class Attention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.q_proj = nn.Linear(cfg.dim, cfg.dim)
        self.k_proj = nn.Linear(cfg.dim, cfg.dim)
        self.v_proj = nn.Linear(cfg.dim, cfg.dim)
        self.rotary = Rotary(cfg.dim)

    def forward(self, x, mask):
        q, k, v = self.rotary(self.q_proj(x)), self.rotary(self.k_proj(x)), self.v_proj(x)
        scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
        causal = torch.ones_like(scores, dtype=torch.bool).tril()
        keep = causal & mask[:, None, :].bool()
        return scores.masked_fill(~keep, -1e4).softmax(-1) @ v

class TinyLM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Embedding(cfg.vocab, cfg.dim)
        self.attn = Attention(cfg)
        self.norm = nn.LayerNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.vocab, bias=False)

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None, labels=None):
        h = self.embed(input_ids) if inputs_embeds is None else inputs_embeds
        h = h + self.attn(self.norm(h), attention_mask)
        logits = self.head(h)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORE)
        return {"logits": logits, "loss": loss}

class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base
        self.scaling = torch.tensor(alpha / rank)
        self.lora_a = nn.Parameter(torch.randn(rank, base.in_features) * 0.02)
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        out = self.base(x)
        low = F.linear(x, self.lora_a)  # raises
        return out + F.linear(low, self.lora_b) * self.scaling

    @torch.no_grad()
    def merge_external(self, deltas: Dict[str, torch.Tensor], name):
        self.base.weight.data += deltas[name + ".lora_b"] @ deltas[name + ".lora_a"] * self.scaling  # raises

class PeftBuilder:
    def __init__(self, cfg, follow_base=True):
        self.cfg, self.follow_base = cfg, follow_base

    def inject(self, model):
        for param in model.parameters():
            param.requires_grad_(False)
        for name, module in list(model.named_modules()):
            if isinstance(module, nn.Linear) and name.split(".")[-1] in self.cfg.targets:
                parent = model.get_submodule(name.rpartition(".")[0])
                wrapped = LoRALinear(module, self.cfg.rank, self.cfg.alpha)
                if self.follow_base:
                    wrapped.to(module.weight.device)
                setattr(parent, name.split(".")[-1], wrapped)
        return model

class PromptTuning(nn.Module):
    def __init__(self, base, cfg, mask_kind="like"):
        super().__init__()
        self.base, self.cfg, self.mask_kind = base, cfg, mask_kind
        self.prompt = nn.Embedding(cfg.n_virtual, cfg.dim)
        self.register_buffer("ids", torch.arange(cfg.n_virtual), persistent=False)

    def extend_mask(self, mask):
        shape = (mask.shape[0], self.cfg.n_virtual)
        if self.mask_kind == "like":
            return torch.cat([mask.new_ones(shape), mask], dim=1)
        prefix = torch.ones(shape, dtype=mask.dtype)
        return torch.cat([prefix, mask], dim=1)  # raises

    def init_from_text(self, token_ids):
        with torch.no_grad():
            rows = self.base.embed.weight[torch.tensor(token_ids)]
            self.prompt.weight.copy_(rows)

    def init_from_average(self, token_ids):
        ids = torch.as_tensor(token_ids).view(1, -1)
        mean = F.embedding_bag(ids, self.base.embed.weight, mode="mean")  # raises
        self.prompt.weight.data.copy_(mean.expand(self.cfg.n_virtual, -1))

    def forward(self, batch):
        embeds = self.base.embed(batch["input_ids"])
        prefix = self.prompt(self.ids)[None].expand(embeds.shape[0], -1, -1)
        mask = self.extend_mask(batch["attention_mask"])
        fill = batch["labels"].new_full((embeds.shape[0], self.cfg.n_virtual), IGNORE)
        labels = torch.cat([fill, batch["labels"]], 1)
        return self.base(inputs_embeds=torch.cat([prefix, embeds], 1), attention_mask=mask, labels=labels)

class AdapterBank(nn.Module):
    def __init__(self, cfg, names, registered):
        super().__init__()
        made = {n: nn.Linear(cfg.dim, cfg.dim) for n in names}
        self.names = list(names)
        self.adapters = nn.ModuleDict(made) if registered else defaultdict(nn.Identity, made)

    def route(self, hidden, task_names):
        out = torch.zeros_like(hidden)
        for name in self.names:
            rows = [i for i, t in enumerate(task_names) if t == name]
            if rows:
                out[rows] = self.adapters[name](hidden[rows])  # raises
        return out

    def route_added(self, hidden, task_ids):
        out = hidden.clone()
        for k, name in enumerate(self.names):
            rows = (task_ids == k).nonzero().squeeze(1)
            out.index_add_(0, rows, self.adapters[name](hidden[rows]))  # raises
        return out

def sequence_logps(logits, labels):
    shifted = labels[:, 1:]
    mask = shifted != IGNORE
    logp = logits[:, :-1].log_softmax(-1)
    picked = logp.gather(2, shifted.masked_fill(~mask, 0)[..., None])[..., 0]
    return (picked * mask).sum(-1)

@dataclass
class PreferenceBatch:
    chosen: dict
    rejected: dict
    ref_chosen: Optional[torch.Tensor] = None
    ref_rejected: Optional[torch.Tensor] = None

    def to(self, device, only_inputs=False):
        for f in fields(self):
            if only_inputs and f.name.startswith("ref_"):
                continue
            setattr(self, f.name, prepare(getattr(self, f.name), device))
        return self

class DPO:
    def __init__(self, policy, cfg):
        self.policy, self.cfg = policy, cfg

    def logps(self, model, part):
        return sequence_logps(model(part["input_ids"], part["attention_mask"])["logits"], part["labels"])

    @torch.no_grad()
    def precompute(self, reference, batch):
        device = next(reference.parameters()).device
        batch.ref_chosen = self.logps(reference, prepare(batch.chosen, device)).cpu()
        batch.ref_rejected = self.logps(reference, prepare(batch.rejected, device)).cpu()
        return batch

    def loss(self, batch):
        policy_ratio = self.logps(self.policy, batch.chosen) - self.logps(self.policy, batch.rejected)
        ref_ratio = batch.ref_chosen - batch.ref_rejected
        margin = policy_ratio - ref_ratio  # raises
        return -F.logsigmoid(self.cfg.beta * margin).mean()

class KLRegularized:
    def __init__(self, policy, reference, home=None):
        self.policy, self.reference, self.home = policy, reference, home

    def reference_logits(self, batch):
        device = next(self.reference.parameters()).device
        with torch.no_grad():
            logits = self.reference(**prepare(batch, device))["logits"]
        return logits if self.home is None else logits.to(self.home)

    def step(self, batch):
        out = self.policy(**batch)
        ref = self.reference_logits(batch)
        kl = F.kl_div(out["logits"].log_softmax(-1), ref.log_softmax(-1), log_target=True, reduction="batchmean")  # raises
        return out["loss"] + 0.1 * kl

def token_accuracy(logits, labels):
    predictions, labels = np.argmax(logits, -1)[:, :-1], labels[:, 1:]
    return float((predictions == labels)[labels != IGNORE].mean())

class Evaluation:
    def __init__(self):
        self.logits, self.labels = [], []

    def add(self, out, batch):
        self.logits.append(out["logits"].detach())
        self.labels.append(batch["labels"])

    def compute(self):
        return token_accuracy(torch.cat(self.logits).cpu().numpy(), torch.cat(self.labels).numpy())  # raises

def train_only_new_tokens(model, first_new, mask_device=None):
    mask = torch.zeros(model.cfg.vocab, 1, device=mask_device)
    mask[first_new:] = 1.0

    def hook(grad):
        return grad * mask  # raises
    return model.embed.weight.register_hook(hook)

def setup(move=True, **kw):
    cfg = TuneConfig(**kw)
    model = TinyLM(cfg)
    batch = InstructionCollator()(sample_features())
    return cfg, model.to(cfg.device) if move else model, prepare(batch, cfg.device)

def preference():
    collate = InstructionCollator()
    return PreferenceBatch(collate(sample_features(2)), collate(sample_features(3)[1:]))

def case_sft_with_late_lora():
    cfg, model, batch = setup()
    PeftBuilder(cfg).inject(model)(**batch)["loss"].backward()

def case_lora_injected_without_follow():
    cfg, model, batch = setup()
    PeftBuilder(cfg, follow_base=False).inject(model)(**batch)["loss"].backward()

def case_lora_injected_before_move():
    cfg, model, batch = setup(move=False)
    model = PeftBuilder(cfg, follow_base=False).inject(model).to(cfg.device)
    model(**batch)["loss"].backward()

def case_merge_downloaded_deltas():
    cfg, model, batch = setup()
    donor = PeftBuilder(cfg).inject(TinyLM(cfg))
    deltas = {k: v for k, v in donor.state_dict().items() if "lora_" in k}
    PeftBuilder(cfg).inject(model)
    model.attn.q_proj.merge_external(deltas, "attn.q_proj")

def case_load_downloaded_deltas():
    cfg, model, batch = setup()
    donor = PeftBuilder(cfg).inject(TinyLM(cfg))
    deltas = {k: v for k, v in donor.state_dict().items() if "lora_" in k}
    PeftBuilder(cfg).inject(model).load_state_dict(deltas, strict=False)
    own = dict(model.named_parameters())
    model.attn.v_proj.merge_external({k: own[k] for k in deltas}, "attn.v_proj")
    return model(**batch)["logits"].mean().item()

def case_prompt_tuning():
    cfg, model, batch = setup()
    tuned = PromptTuning(model, cfg).to(cfg.device)
    tuned.init_from_text([3, 4, 6])
    tuned(batch)["loss"].backward()

def case_prompt_mask_plain():
    cfg, model, batch = setup()
    PromptTuning(model, cfg, mask_kind="plain").to(cfg.device)(batch)

def case_prompt_from_average():
    cfg, model, _ = setup()
    PromptTuning(model, cfg).to(cfg.device).init_from_average([3, 4, 6])

def case_adapters_in_default_dict():
    cfg, model, batch = setup()
    bank = AdapterBank(cfg, ["qa", "nli"], registered=False).to(cfg.device)
    bank.route(model.embed(batch["input_ids"]), ["qa", "nli", "qa"])

def case_adapters_routed_by_name():
    cfg, model, batch = setup()
    bank = AdapterBank(cfg, ["qa", "nli"], registered=True).to(cfg.device)
    bank.route(model.embed(batch["input_ids"]), ["qa", "nli", "qa"]).sum().backward()

def case_adapters_routed_by_id():
    cfg, model, batch = setup()
    bank = AdapterBank(cfg, ["qa", "nli"], registered=True).to(cfg.device)
    bank.route_added(model.embed(batch["input_ids"]), torch.tensor([0, 1, 0]))

def case_dpo_reference_moved_with_batch():
    cfg, policy, _ = setup()
    dpo = DPO(policy, cfg)
    batch = dpo.precompute(TinyLM(cfg).to("cuda:1").eval(), preference())
    dpo.loss(batch.to(cfg.device)).backward()

def case_dpo_reference_forgotten():
    cfg, policy, _ = setup()
    dpo = DPO(policy, cfg)
    batch = dpo.precompute(TinyLM(cfg).eval(), preference())
    dpo.loss(batch.to(cfg.device, only_inputs=True)).backward()

def case_kl_reference_elsewhere():
    cfg, policy, batch = setup()
    KLRegularized(policy, TinyLM(cfg).to("cuda:1")).step(batch)

def case_kl_reference_sent_home():
    cfg, policy, batch = setup()
    KLRegularized(policy, TinyLM(cfg).to("cuda:1"), home=cfg.device).step(batch).backward()

def case_evaluate():
    cfg, model, batch = setup()
    evaluation = Evaluation()
    evaluation.add(model(**batch), batch)
    return evaluation.compute()

def case_evaluate_loader_batch():
    cfg, model, batch = setup()
    evaluation = Evaluation()
    evaluation.add(model(**batch), InstructionCollator()(sample_features()))
    return evaluation.compute()

def case_new_token_mask():
    cfg, model, batch = setup()
    train_only_new_tokens(model, 30)
    model(**batch)["loss"].backward()

def case_new_token_mask_beside_weight():
    cfg, model, batch = setup(device="cuda:2")
    train_only_new_tokens(model, 30, model.embed.weight.device)
    model(**batch)["loss"].backward()

def case_model_moved_after_warmup():
    cfg, model, batch = setup()
    model(**batch)
    model.to("cuda:1")
    model(**prepare(batch, "cuda:1"))

def case_longer_batch_after_move():
    cfg, model, batch = setup()
    model(**batch)
    model.to("cuda:1")
    longer = InstructionCollator()(sample_features(6))
    model(**prepare(longer, "cuda:1"))["loss"].backward()
