"""Several GPUs: stages, replicas, DataParallel, the current device."""
import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import torch
import torch.nn as nn
import torch.nn.functional as F

GPUS = [torch.device(f"cuda:{i}") for i in range(torch.cuda.device_count())]


def _device_of(module):
    return next(module.parameters()).device


class Pipeline(nn.Module):
    def __init__(self, width=6, depth=4, skip=None):
        super().__init__()
        self.stages = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.Tanh()).to(gpu)
            for gpu, _ in zip(itertools.cycle(GPUS), range(depth))
        )
        self.skip = skip

    def forward(self, x):
        kept = None
        for number, stage in enumerate(self.stages):
            x = stage(x.to(_device_of(stage)))
            if number == 0:
                kept = x
        if self.skip == "add":
            x = x + kept  # raises
        elif self.skip == "cat":
            x = torch.cat([kept.to(x.device), x], dim=-1)
        return x


def case_pipeline_plain():
    model = Pipeline()
    x, y = torch.randn(5, 6), torch.randn(5, 6)
    output = model(x)
    F.mse_loss(output, y.to(output.device)).backward()
    assert {str(p.grad.device) for p in model.parameters()} == set(map(str, GPUS))


def case_pipeline_cat():
    model = Pipeline(skip="cat")
    head = nn.Linear(12, 1).to(GPUS[-1])
    head(model(torch.randn(5, 6))).mean().backward()


def case_pipeline_add():
    model = Pipeline(depth=3, skip="add")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.randn(5, 6, device=GPUS[0])).pow(2).mean().backward()
    optimizer.step()


def case_pipeline_wrapped_around():
    model = Pipeline(depth=len(GPUS) + 1, skip="add")
    model(torch.randn(5, 6)).sum().backward()


class TwoTowers(nn.Module):
    def __init__(self, devices, dim=5):
        super().__init__()
        self.text_device, self.image_device = devices
        self.text = nn.EmbeddingBag(30, dim).to(self.text_device)
        self.image = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.LazyLinear(dim)).to(self.image_device)
        self.scale = nn.Parameter(torch.tensor(2.0, device=self.text_device))

    def forward(self, tokens, images):
        text = F.normalize(self.text(tokens.to(self.text_device)), dim=-1)
        image = F.normalize(self.image(images.to(self.image_device)), dim=-1)
        return text, image

    def loss(self, tokens, images):
        text, image = self(tokens, images)
        logits = self.scale.exp() * text @ image.t()  # raises
        target = torch.arange(len(logits), device=logits.device)
        return (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2


def _pairs(n=4):
    return torch.randint(0, 30, (n, 3)), torch.randn(n, 1, 6, 6)


def case_towers_apart():
    model = TwoTowers(GPUS[:2])
    loss = model.loss(*_pairs())
    loss.backward()


def case_towers_together():
    model = TwoTowers(["cuda", torch.device("cuda:0")])
    loss = model.loss(*_pairs())
    loss.backward()
    text, image = TwoTowers(("cuda:1", "cuda:3"))(*_pairs())
    gap = text.detach().cpu() - image.detach().cpu()
    assert gap.shape == (4, 5)


class Scaled(nn.Module):
    def __init__(self, mean, register=True):
        super().__init__()
        if register:
            self.register_buffer("mean", mean)
        else:
            self.mean = mean
        self.fc = nn.Linear(4, 3)

    def forward(self, x, y=None):
        logits = self.fc(x - self.mean)
        if y is None:
            return logits
        return logits, F.cross_entropy(logits, y, reduction="none")


def case_data_parallel_losses():
    model = nn.DataParallel(Scaled(torch.rand(4)).cuda())
    optimizer = torch.optim.Adam(model.module.parameters())
    x, y = torch.randn(10, 4), torch.randint(0, 3, (10,))
    logits, losses = model(x, y)
    assert logits.device == losses.device == GPUS[0]
    losses.mean().backward()
    optimizer.step()


def case_data_parallel_centred():
    x = torch.randn(12, 4).cuda()
    model = nn.DataParallel(Scaled(x.mean(0), register=False).cuda(), device_ids=[0, 1])
    scores = model(x)  # raises
    scores.sum().backward()


def case_data_parallel_one_sample():
    x = torch.randn(12, 4).cuda()
    model = nn.DataParallel(Scaled(x.mean(0), register=False).cuda(), device_ids=[0, 1])
    assert model(x[:1]).shape == (1, 3)


def case_data_parallel_gathered_last():
    ids = [gpu.index for gpu in GPUS]
    model = nn.DataParallel(Scaled(torch.zeros(4)).to(GPUS[0]), device_ids=ids, output_device=ids[-1])
    x, y = (each.to(GPUS[0]) for each in (torch.randn(8, 4), torch.randint(0, 3, (8,))))
    loss = F.cross_entropy(model(x), y)  # raises
    loss.backward()


class Meter:
    def __init__(self, size):
        self.sums = torch.zeros(size, device="cuda")

    def __call__(self, values):
        self.sums += values.detach().sum(dim=0)  # raises
        return self.sums


def case_current_device_meter():
    model = nn.Linear(4, 3).to("cuda:1")
    meter = Meter(3)
    with torch.cuda.device(1):
        for x in torch.randn(2, 5, 4).cuda():
            meter(model(x))


def case_current_device_everything():
    before = torch.cuda.current_device()
    with ExitStack() as stack:
        stack.enter_context(torch.cuda.device(GPUS[2]))
        model, meter = nn.Linear(4, 3).cuda(), Meter(3)
        for x in torch.randn(2, 5, 4).cuda():
            sums = meter(model(x))
        assert sums.device.index == torch.cuda.current_device() == 2
    assert torch.cuda.current_device() == before


def case_set_device_midway():
    torch.cuda.set_device(1)
    model = nn.GRU(3, 4, batch_first=True).cuda()
    names = [f"cuda:{torch.cuda.current_device()}", "cuda"]
    torch.cuda.set_device(0)
    x = torch.randn(2, 5, 3)
    for name in names:
        output, _ = model(x.to(name))  # raises
        print(name, output.mean().item())


def case_replicas_in_threads():
    source = nn.Linear(4, 2)
    state = source.state_dict()

    def work(job):
        gpu, shard = job
        replica = nn.Linear(4, 2).to(gpu)
        replica.load_state_dict(state)
        return replica(shard.to(gpu, non_blocking=True)).pow(2).mean().cpu()

    shards = torch.randn(16, 4).chunk(len(GPUS))
    with ThreadPoolExecutor(1) as pool:
        losses = list(pool.map(work, zip(GPUS, shards)))
    assert torch.stack(losses).mean() > 0


def _replicas(count=3):
    source = nn.Linear(4, 1)
    models = []
    for gpu in GPUS[:count]:
        model = nn.Linear(4, 1)
        model.load_state_dict(source.state_dict())
        models.append(model.to(gpu))
    for model in models:
        model(torch.randn(6, 4, device=_device_of(model))).mean().backward()
    return models


def case_average_gradients():
    models = _replicas()
    for group in zip(*(model.parameters() for model in models)):
        mean = torch.stack([p.grad.to(group[0].device) for p in group]).mean(0)
        for p in group:
            p.grad.copy_(mean)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    for optimizer in optimizers:
        optimizer.step()


def case_average_weights():
    models = _replicas(2)
    first, *others = models
    with torch.no_grad():
        for name, p in first.named_parameters():
            for other in others:
                p += other.get_parameter(name)  # raises
            p /= len(models)


def case_ranks_from_one():
    world = torch.cuda.device_count()
    shards = {}
    for rank, shard in enumerate(torch.arange(12.0).chunk(world), start=1):
        shards[rank] = shard.to("cuda:%d" % rank)  # raises
    print(sum(s.sum().item() for s in shards.values()))


class Experts(nn.Module):
    def __init__(self, dim=4, devices=GPUS):
        super().__init__()
        self.home = devices[0]
        self.gate = nn.Linear(dim, len(devices)).to(self.home)
        self.experts = nn.ModuleList(nn.Linear(dim, dim).to(d) for d in devices)

    def forward(self, x):
        weight, chosen = self.gate(x).softmax(-1).max(-1)
        output = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero().squeeze(1)
            if not len(rows):
                continue
            part = expert(x[rows].to(_device_of(expert)))
            output.index_add_(0, rows, part.to(self.home) * weight[rows, None])
        return output

    def balance(self, x):
        share = self.gate(x).softmax(-1).mean(0)
        norms = [torch.stack([p.norm() for p in expert.parameters()]).sum() for expert in self.experts]
        return (share * torch.stack(norms)).sum()  # raises


def case_experts():
    model = Experts()
    model(torch.randn(9, 4, device=model.home)).sum().backward()


def case_experts_balance():
    model = Experts(devices=GPUS[1:3])
    x = torch.randn(9, 4, device=model.home)
    loss = model(x).pow(2).mean() + 0.01 * model.balance(x)
    loss.backward()
