import diffusers
import lightning_fabric
import pytorch_lightning as pl
import torch
import torch.nn.functional as F
import torchmetrics
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def _batches():
    return DataLoader(TensorDataset(torch.randn(8, 4), torch.randint(0, 3, (8,))), batch_size=4)


def _trainer():
    return pl.Trainer(
        accelerator="gpu",
        devices=1,
        max_steps=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


class Noisy(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 3)

    def training_step(self, batch, batch_idx):
        x, y = batch
        noise = torch.randn(x.shape)
        return F.cross_entropy(self.net(x + noise), y)  # raises

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Quiet(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 3)
        self.register_buffer("scale", torch.ones(4))
        self.accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=3)

    def forward(self, x):
        return self.net(x * self.scale)

    def training_step(self, batch, batch_idx):
        x, y = batch
        noise = torch.randn(x.shape, device=self.device)
        logits = self(x + noise)
        self.accuracy(logits, y)
        return F.cross_entropy(logits, y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Scaled(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 3)
        self.scale = torch.ones(4)

    def forward(self, x):
        return self.net(x * self.scale)  # raises

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.cross_entropy(self(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Measured(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 3)
        self.metrics = {"accuracy": torchmetrics.Accuracy(task="multiclass", num_classes=3)}

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self.net(x)
        self.metrics["accuracy"].update(logits, y)  # raises
        return F.cross_entropy(logits, y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Validated(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 3)
        self.outputs = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.cross_entropy(self.net(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.outputs.append(self.net(x).argmax(1) == y)

    def on_validation_epoch_end(self):
        weights = torch.linspace(0, 1, 4)
        (self.outputs[0] * weights).sum()  # raises

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Total(torchmetrics.Metric):
    def __init__(self):
        super().__init__()
        self.add_state("total", default=torch.zeros(3), dist_reduce_fx="sum")

    def update(self, logits):
        self.total += logits.sum(0)

    def compute(self):
        return self.total


class PlainTotal(torchmetrics.Metric):
    def __init__(self):
        super().__init__()
        self.add_state("count", default=torch.zeros(1), dist_reduce_fx="sum")
        self.weights = torch.ones(3)

    def weighted(self, logits):
        return logits * self.weights  # raises

    def update(self, logits):
        self.count += logits.sum()

    def compute(self):
        return self.count


def module_with_noise():
    _trainer().fit(Noisy(), _batches())


def module_on_its_device():
    _trainer().fit(Quiet(), _batches())


def module_with_plain_tensor():
    _trainer().fit(Scaled(), _batches())


def module_with_metrics_in_a_dictionary():
    _trainer().fit(Measured(), _batches())


def module_validated():
    _trainer().validate(Validated(), _batches(), verbose=False)


def module_used_by_hand():
    model = Quiet()
    model.to("cuda")
    return model(torch.randn(2, 4, device="cuda"))


def module_used_with_cpu_data():
    model = nn.Sequential(nn.Linear(4, 4), Quiet().net)
    model.cuda()
    return model(torch.randn(2, 4))  # raises


def metric_left_on_cpu():
    metric = torchmetrics.Accuracy(task="multiclass", num_classes=3)
    logits = torch.randn(4, 3, device="cuda")
    labels = torch.randint(0, 3, (4,), device="cuda")
    metric.update(logits, labels)  # raises


def metric_moved():
    metric = torchmetrics.Accuracy(task="multiclass", num_classes=3).to("cuda")
    logits = torch.randn(4, 3, device="cuda")
    metric.update(logits, torch.randint(0, 3, (4,), device="cuda"))
    return metric.compute().item()


def metric_of_host_copies():
    metric = torchmetrics.F1Score(task="multiclass", num_classes=3)
    logits = torch.randn(4, 3, device="cuda")
    return metric(logits.cpu(), torch.randint(0, 3, (4,)))


def own_metric_moved():
    metric = Total().to("cuda")
    metric.update(torch.randn(4, 3, device="cuda"))
    return metric.compute()


def own_metric_with_plain_tensor():
    metric = PlainTotal().to("cuda")
    metric.weighted(torch.randn(4, 3, device="cuda"))


def table_of_scheduler():
    scheduler = diffusers.DDPMScheduler(num_train_timesteps=10)
    steps = torch.randint(0, 10, (2,), device="cuda")
    return scheduler.alphas_cumprod[steps]  # raises


def table_of_scheduler_moved():
    scheduler = diffusers.DDPMScheduler(num_train_timesteps=10)
    steps = torch.randint(0, 10, (2,), device="cuda")
    return scheduler.alphas_cumprod.to(steps.device)[steps]


def noise_added_on_cpu():
    scheduler = diffusers.DDPMScheduler(num_train_timesteps=10)
    latents = torch.randn(2, 3, 8, 8, device="cuda")
    noise = torch.randn(latents.shape)
    steps = torch.randint(0, 10, (2,), device="cuda")
    return scheduler.add_noise(latents, noise, steps)  # raises


def noise_added():
    scheduler = diffusers.DDPMScheduler(num_train_timesteps=10)
    latents = torch.randn(2, 3, 8, 8, device="cuda")
    steps = torch.randint(0, 10, (2,)).to(latents.device)
    return scheduler.add_noise(latents, torch.randn_like(latents), steps)


def _unet():
    return diffusers.UNet2DModel(
        sample_size=8,
        block_out_channels=(8, 8),
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "UpBlock2D"),
    )


def denoiser_with_cpu_sample():
    unet = _unet().to("cuda")
    return unet(torch.randn(1, 3, 8, 8), torch.tensor([1], device="cuda")).sample  # raises


def denoiser_trained():
    unet = _unet().to("cuda")
    scheduler = diffusers.DDPMScheduler(num_train_timesteps=10)
    clean = torch.randn(2, 3, 8, 8).to("cuda")
    noise = torch.randn(clean.shape, device=clean.device)
    steps = torch.randint(0, 10, (2,), device=clean.device)
    predicted = unet(scheduler.add_noise(clean, noise, steps), steps).sample
    F.mse_loss(predicted, noise).backward()


def copies_on_several_devices():
    net = nn.DataParallel(nn.Linear(4, 3).cuda())
    labels = torch.randint(0, 3, (8,), device="cuda")
    return F.cross_entropy(net(torch.randn(8, 4)), labels)


def loss_of_copies_with_cpu_labels():
    net = nn.DataParallel(nn.Linear(4, 3).cuda())
    labels = torch.randint(0, 3, (8,))
    return F.cross_entropy(net(torch.randn(8, 4, device="cuda")), labels)  # raises


class Cached(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 3)
        self.register_buffer("cache", None)

    def make_cache(self, device=None):
        self.cache = torch.zeros(3, device=device)

    def forward(self, x):
        return self.net(x) + self.cache  # raises


def _cached_within(fabric):
    with fabric.init_module():
        model = Cached()
    model = fabric.setup_module(model)
    with fabric.init_tensor():
        model.make_cache()
    return model(torch.ones(2, 4, device=fabric.device)).sum().item()


def cache_made_within_fabric():
    fabric = lightning_fabric.Fabric(accelerator="cuda", devices=1)
    return fabric.launch(_cached_within)


def _cached_behind(fabric):
    model = Cached()
    model = fabric.setup_module(model)
    model.make_cache()
    return model(torch.ones(2, 4, device=fabric.device)).sum().item()


def cache_made_behind_fabric():
    fabric = lightning_fabric.Fabric(accelerator="cuda", devices=1)
    return fabric.launch(_cached_behind)


def module_on_the_host_after_training():
    module = Quiet()
    _trainer().fit(module, _batches())
    return module(torch.ones(2, 4)).sum().item()


def module_used_on_gpus_after_training():
    module = Quiet()
    _trainer().fit(module, _batches())
    return module.net(torch.ones(2, 4, device="cuda"))  # raises
