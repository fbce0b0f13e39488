import argparse
from dataclasses import dataclass, field
from typing import Dict, List

import torch
import torch.nn as nn
import torch.nn.functional as F


class TwoStage(nn.Module):
    def __init__(self, dev0="cuda:0", dev1="cuda:1"):
        super().__init__()
        self.dev0, self.dev1 = dev0, dev1
        self.net1 = nn.Linear(10, 10).to(dev0)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5).to(dev1)

    def forward(self, x):
        x = self.relu(self.net1(x.to(self.dev0)))
        return self.net2(x.to(self.dev1))


def toy_model_parallel():
    model = TwoStage()
    loss_fn = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    optimizer.zero_grad()
    outputs = model(torch.randn(20, 10))
    labels = torch.randn(20, 5).to("cuda:1")
    loss_fn(outputs, labels).backward()
    optimizer.step()


def toy_model_parallel_labels():
    model = TwoStage()
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    device = next(model.parameters()).device
    for _ in range(2):
        x = torch.randn(20, 10).to(device)
        y = torch.randint(0, 5, (20,)).to(device)
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)  # raises
        loss.backward()
        optimizer.step()


class ShardedLM(nn.Module):
    """Layers are spread over the GPUs as a device map says."""

    def __init__(self, vocab=20, dim=8, device_map: Dict[str, int] = None):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList([nn.Linear(dim, dim) for _ in range(4)])
        self.norm = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, vocab, bias=False)
        self.device_map = device_map or {"embed": 0, "layers.0": 0, "layers.1": 1, "layers.2": 2, "layers.3": 3, "head": 3}
        self.embed.to(self.device_map["embed"])
        for i, layer in enumerate(self.layers):
            layer.to(self.device_map[f"layers.{i}"])
        self.norm.to(self.device_map["head"])
        self.lm_head.to(self.device_map["head"])

    @property
    def device(self):
        return next(self.parameters()).device

    def features(self, ids):
        h = self.embed(ids)
        for layer in self.layers:
            h = h.to(layer.weight.device)
            h = h + torch.tanh(layer(h))
        return self.norm(h)

    def forward(self, ids, labels=None):
        logits = self.lm_head(self.features(ids))
        loss = None
        if labels is not None:
            shift_logits = logits[..., :-1, :].contiguous()
            shift_labels = labels[..., 1:].contiguous()
            shift_labels = shift_labels.to(shift_logits.device)
            loss = F.cross_entropy(shift_logits.view(-1, shift_logits.size(-1)), shift_labels.view(-1))
        return loss, logits


class ShardedClassifier(ShardedLM):
    def __init__(self, num_labels=3, **kwargs):
        super().__init__(**kwargs)
        self.score = nn.Linear(8, num_labels).to(self.device_map["head"])
        self.pad_token_id = 0

    def forward(self, ids, labels=None):
        logits = self.score(self.features(ids))
        lengths = (ids != self.pad_token_id).sum(-1) - 1
        rows = torch.arange(ids.size(0), device=logits.device)
        pooled = logits[rows, lengths]  # raises
        if labels is not None:
            return F.cross_entropy(pooled, labels.to(pooled.device)), pooled
        return None, pooled


def sharded_lm_step():
    model = ShardedLM()
    ids = torch.randint(1, 20, (2, 6)).to(model.device)
    loss, _ = model(ids, labels=ids)
    loss.backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    total = torch.zeros((), device=model.device)
    return total + loss.detach().to(total.device)


def sharded_lm_running_loss():
    model = ShardedLM()
    args = argparse.Namespace(device=model.device)
    tr_loss = torch.tensor(0.0).to(args.device)
    for _ in range(2):
        ids = torch.randint(1, 20, (2, 6), device=args.device)
        loss, _ = model(ids, labels=ids)
        loss.backward()
        tr_loss += loss.detach()  # raises
    return tr_loss.item()


def sharded_classifier_pooling():
    model = ShardedClassifier()
    ids = torch.randint(1, 20, (2, 6), device="cuda:0")
    labels = torch.randint(0, 3, (2,), device="cuda:0")
    loss, _ = model(ids, labels)
    loss.backward()


def sharded_lm_greedy_decoding():
    model = ShardedLM().eval()
    ids = torch.tensor([[3, 4, 5]], device=model.device)
    with torch.no_grad():
        for _ in range(3):
            _, logits = model(ids)
            next_id = logits[:, -1].argmax(dim=-1, keepdim=True)
            ids = torch.cat([ids, next_id], dim=-1)  # raises
    return ids


@dataclass
class PairConfig:
    policy_device: str = "cuda:0"
    ref_device: str = "cuda:1"
    beta: float = 0.1
    logs: List[float] = field(default_factory=list)


def _logps(model, ids):
    logits = model(ids)
    labels = ids[:, 1:].unsqueeze(-1)
    return torch.gather(logits[:, :-1].log_softmax(-1), 2, labels).squeeze(-1).sum(-1)


def _tiny_policy():
    return nn.Sequential(nn.Embedding(12, 8), nn.Linear(8, 12))


def dpo_with_models_on_two_gpus():
    cfg = PairConfig()
    policy, ref = _tiny_policy().to(cfg.policy_device), _tiny_policy().to(cfg.ref_device)
    chosen, rejected = torch.randint(0, 12, (2, 5)), torch.randint(0, 12, (2, 5))
    pi = [_logps(policy, t.to(cfg.policy_device)) for t in (chosen, rejected)]
    with torch.no_grad():
        rf = [_logps(ref, t.to(cfg.ref_device)) for t in (chosen, rejected)]
    pi_logratios = pi[0] - pi[1]
    ref_logratios = rf[0] - rf[1]
    logits = pi_logratios - ref_logratios  # raises
    loss = -F.logsigmoid(cfg.beta * logits).mean()
    loss.backward()
    cfg.logs.append(loss.item())


def dpo_with_models_on_two_gpus_gathered():
    cfg = PairConfig(ref_device="cuda:3")
    policy, ref = _tiny_policy().to(cfg.policy_device), _tiny_policy().to(cfg.ref_device)
    chosen, rejected = torch.randint(0, 12, (2, 5)), torch.randint(0, 12, (2, 5))
    pi = [_logps(policy, t.to(cfg.policy_device)) for t in (chosen, rejected)]
    with torch.no_grad():
        rf = [_logps(ref, t.to(cfg.ref_device)).to(cfg.policy_device) for t in (chosen, rejected)]
    logits = (pi[0] - pi[1]) - (rf[0] - rf[1])
    loss = -F.logsigmoid(cfg.beta * logits).mean()
    loss.backward()
    cfg.logs.append(loss.item())


class ModulatedBlocks(nn.Module):
    def __init__(self, dim=8, gpus=(0, 1)):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(dim, dim).to(f"cuda:{g}") for g in gpus)
        self.scale_shift_table = nn.Parameter(torch.randn(2, dim, device=f"cuda:{gpus[0]}") / dim**0.5)

    def forward(self, x, temb):
        for block in self.blocks:
            x = block(x.to(block.weight.device))
        scale, shift = (self.scale_shift_table + temb.unsqueeze(1)).chunk(2, dim=1)
        return x * (1 + scale.squeeze(1)) + shift.squeeze(1)  # raises


def final_modulation_on_the_first_gpu():
    net = ModulatedBlocks()
    return net(torch.randn(3, 8, device="cuda:0"), torch.randn(3, 8, device="cuda:0"))


def final_modulation_on_one_gpu():
    net = ModulatedBlocksOnOutput(gpus=(0, 1, 2))
    return net(torch.randn(3, 8, device="cuda:0"), torch.randn(3, 8, device="cuda:0"))


class ModulatedBlocksOnOutput(ModulatedBlocks):
    def forward(self, x, temb):
        for block in self.blocks:
            x = block(x.to(block.weight.device))
        table = self.scale_shift_table + temb.unsqueeze(1)
        scale, shift = table.to(x.device).chunk(2, dim=1)
        return x * (1 + scale.squeeze(1)) + shift.squeeze(1)


def encoder_states_from_several_gpus():
    devices = [torch.device(f"cuda:{i}") for i in range(torch.cuda.device_count())]
    layers = [nn.Linear(8, 8).to(d) for d in devices]
    x = torch.randn(2, 8)
    states = []
    for layer, d in zip(layers, devices):
        x = layer(x.to(d))
        states.append(x)
    joint = torch.stack([s.to(devices[-1]) for s in states], dim=1)
    weights = torch.softmax(torch.ones(len(states), device=devices[-1]), 0)
    return (joint * weights.view(1, -1, 1)).sum(1)


def data_parallel_net():
    net = nn.DataParallel(nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))).cuda()
    optimizer = torch.optim.SGD(net.module.parameters(), lr=0.1)
    x = torch.randn(8, 6).cuda()
    y = torch.randint(0, 2, (8,)).cuda()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
