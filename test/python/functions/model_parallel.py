import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F


class ToyPipeline(nn.Module):
    def __init__(self, dev0, dev1):
        super().__init__()
        self.dev0, self.dev1 = dev0, dev1
        self.front = nn.Sequential(nn.Linear(4, 8), nn.ReLU()).to(dev0)
        self.back = nn.Linear(8, 3).to(dev1)

    def forward(self, x):
        x = self.front(x.to(self.dev0))
        return self.back(x.to(self.dev1))


def case_two_gpus_labels_follow():
    model = ToyPipeline("cuda:0", "cuda:1")
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(5, 4), torch.randint(3, (5,))
    for _ in range(2):
        opt.zero_grad()
        out = model(x)
        loss = nn.CrossEntropyLoss()(out, y.to(out.device))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()


def case_two_gpus_labels_first():
    model = ToyPipeline("cuda:0", "cuda:1")
    x, y = torch.randn(5, 4).to("cuda:0"), torch.randint(3, (5,)).to("cuda:0")
    out = model(x)
    loss = nn.CrossEntropyLoss()(out, y)  # raises
    loss.backward()


class ShardedGPT(nn.Module):
    """layers spread evenly over the given devices; embeddings and head on the first"""

    def __init__(self, n_layer, dim, vocab, devices):
        super().__init__()
        self.devices = devices
        self.wte = nn.Embedding(vocab, dim).to(devices[0])
        per = -(-n_layer // len(devices))
        self.blocks = nn.ModuleList()
        for i in range(n_layer):
            self.blocks.append(nn.TransformerEncoderLayer(dim, 2, dim, dropout=0.).to(devices[i // per]))
        self.ln_f = nn.LayerNorm(dim).to(devices[-1])

    def forward(self, ids):
        x = self.wte(ids.to(self.devices[0]))
        for block in self.blocks:
            x = block(x.to(next(block.parameters()).device))
        x = self.ln_f(x)
        return F.linear(x, self.wte.weight)  # raises


class ShardedGPTHead(ShardedGPT):
    def forward(self, ids):
        x = self.wte(ids.to(self.devices[0]))
        for block in self.blocks:
            x = block(x.to(next(block.parameters()).device))
        return F.linear(self.ln_f(x).to(self.wte.weight.device), self.wte.weight)


def case_tied_head():
    devs = [f"cuda:{i}" for i in range(2)]
    ShardedGPT(4, 4, 9, devs)(torch.randint(9, (2, 3)))


def case_tied_head_moves_back():
    devs = [torch.device("cuda", i) for i in range(torch.cuda.device_count())]
    out = ShardedGPTHead(4, 4, 9, devs)(torch.randint(9, (2, 3)))
    assert out.device == devs[0]


def device_map_auto(names, n_gpu):
    per = max(1, len(names) // n_gpu)
    return {name: min(i // per, n_gpu - 1) for i, name in enumerate(names)}


def dispatch(model, device_map):
    for name, idx in device_map.items():
        module = model.get_submodule(name)
        module.to(idx)

        def pre_hook(mod, args, idx=idx):
            return tuple(a.to(idx) if torch.is_tensor(a) else a for a in args)

        module.register_forward_pre_hook(pre_hook)
    return model


class ResidualStack(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(depth)])
        self.scale = nn.ParameterList([nn.Parameter(torch.ones(4)) for _ in range(depth)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class GatedResidualStack(ResidualStack):
    def forward(self, x):
        for layer, scale in zip(self.layers, self.scale):
            x = x + scale * layer(x)  # raises
        return x


def case_hooks_move_between_layers():
    net = ResidualStack()
    names = [f"layers.{i}" for i in range(3)]
    dispatch(net, device_map_auto(names, 3))
    assert net(torch.randn(2, 4)).device.index == 2


def case_hooks_and_raw_parameters():
    net = GatedResidualStack().to(0)
    dispatch(net, device_map_auto([f"layers.{i}" for i in range(3)], 3))
    net(torch.randn(2, 4, device=0))


class CrossBranch(nn.Module):
    def __init__(self):
        super().__init__()
        self.text = nn.Linear(3, 5).cuda(0)
        self.image = nn.Linear(6, 5).cuda(1)
        self.logit_scale = nn.Parameter(torch.ones([]) * 2.6592)

    def forward(self, text, image):
        t = F.normalize(self.text(text.cuda(0)), dim=-1)
        i = F.normalize(self.image(image.cuda(1)), dim=-1)
        return self.logit_scale.exp() * i.to(t.device) @ t.t()


def case_clip_two_towers():
    model = CrossBranch()
    logits = model(torch.randn(4, 3), torch.randn(4, 6))
    target = torch.arange(4, device=logits.device)
    ((F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2).backward()


def case_kd_on_separate_cards():
    teacher, student = nn.Linear(4, 3).to("cuda:1"), nn.Linear(4, 3).to("cuda:0")
    x = torch.randn(6, 4)
    T = 2.0
    with torch.no_grad():
        soft = F.softmax(teacher(x.to("cuda:1")) / T, dim=-1)
    log_p = F.log_softmax(student(x.to("cuda:0")) / T, dim=-1)
    loss = F.kl_div(log_p, soft, reduction="batchmean") * T * T  # raises
    loss.backward()


def case_losses_from_all_cards():
    nets = [nn.Linear(2, 1).to(f"cuda:{k}") for k in range(3)]
    losses = []
    for k, net in enumerate(nets):
        losses.append(net(torch.randn(2, 2, device=f"cuda:{k}")).pow(2).mean())
    total = sum(losses)  # raises
    total.backward()


def case_losses_gathered():
    nets = [nn.Linear(2, 1).to(f"cuda:{k}") for k in range(3)]
    losses = [net(torch.randn(2, 2, device=f"cuda:{k}")).pow(2).mean() for k, net in enumerate(nets)]
    total = torch.stack([l.to("cuda:0") for l in losses]).sum()
    total.backward()
    grads = [p.grad for net in nets for p in net.parameters()]
    flat = torch.cat([g.reshape(-1).cpu() for g in grads])
    return flat.norm()


def case_current_device_block():
    with torch.cuda.device(2):
        net = nn.Linear(3, 3).cuda()
        x = torch.randn(2, 3).cuda()
        y = net(x)
    mask = torch.ones(2, 3).to(y.device)
    return y * mask


def case_current_device_leaks():
    with torch.cuda.device(2):
        net = nn.Linear(3, 3).cuda()
    x = torch.randn(2, 3).cuda()
    return net(x)  # raises


@contextlib.contextmanager
def on_gpu(index):
    previous = torch.cuda.current_device()
    torch.cuda.set_device(index)
    try:
        yield torch.device("cuda", index)
    finally:
        torch.cuda.set_device(previous)


def case_set_device_wrapper():
    with on_gpu(3) as dev:
        weights = torch.rand(4).cuda()
        table = torch.rand(4, 2, device="cuda")
        out = weights @ table
    assert out.device == dev
    offsets = torch.arange(2, device=dev)
    return out + offsets


def case_replicas_average():
    """poor man's data parallel"""
    base = nn.Linear(4, 2)
    replicas = [nn.Linear(4, 2).to(f"cuda:{i}") for i in range(2)]
    for r in replicas:
        r.load_state_dict(base.state_dict())
    batch = torch.randn(8, 4)
    for chunk, r in zip(batch.chunk(2), replicas):
        r(chunk.to(r.weight.device)).sum().backward()
    with torch.no_grad():
        for name, p in base.named_parameters():
            grads = [dict(r.named_parameters())[name].grad for r in replicas]
            p.grad = torch.stack([g.to(p.device) for g in grads]).mean(0)
    torch.optim.SGD(base.parameters(), lr=0.1).step()


def case_replicas_average_first_card():
    replicas = [nn.Linear(4, 2).to(f"cuda:{i}") for i in range(2)]
    batch = torch.randn(8, 4)
    for i, r in enumerate(replicas):
        r(batch[i::2].cuda(i)).sum().backward()
    master = replicas[0]
    for params in zip(*[r.parameters() for r in replicas]):
        mean_grad = torch.mean(torch.stack([p.grad for p in params]), dim=0)  # raises
        params[0].grad.copy_(mean_grad)
    return master


def case_moe_experts_elsewhere():
    experts = [nn.Linear(4, 4).to(f"cuda:{e % 2}") for e in range(4)]
    router = nn.Linear(4, 4).to("cuda:0")
    x = torch.randn(6, 4, device="cuda:0")
    gate, choice = router(x).softmax(-1).max(-1)
    out = torch.zeros_like(x)
    for e, expert in enumerate(experts):
        rows = (choice == e).nonzero(as_tuple=True)[0]
        if rows.numel() == 0:
            continue
        dev = expert.weight.device
        y = expert(x[rows].to(dev))
        out.index_add_(0, rows, (y.to(x.device) * gate[rows, None]))
    return out


def case_dp_attribute_table():
    class Quantizer(nn.Module):
        def __init__(self):
            super().__init__()
            self.proj = nn.Linear(4, 4)
            self.levels = torch.linspace(-1, 1, 4).cuda()

        def forward(self, x):
            d = (self.proj(x).unsqueeze(-1) - self.levels).abs()  # raises
            return d.argmin(-1)

    network = Quantizer().cuda()
    inputs = nn.parallel.scatter(torch.randn(4, 4).cuda(), [0, 1])
    replicas = nn.parallel.replicate(network, [0, 1])
    outputs = [replica(part) for replica, part in zip(replicas, inputs)]
    return nn.parallel.gather(outputs, 0)
