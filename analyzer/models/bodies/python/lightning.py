"""Lightning under its names, and torchmetrics."""

import dt
import torch


def device_of(accelerator):
    if accelerator == "cpu":
        return torch.device("cpu")
    return torch.device("cuda") if accelerator in ("gpu", "cuda") else dt.device_of_process()


@dt.models(
    "lightning.LightningModule",
    "lightning.pytorch.LightningModule",
    "lightning.pytorch.core.LightningModule",
    "pytorch_lightning.LightningModule",
    "pytorch_lightning.core.LightningModule",
    "pytorch_lightning.core.lightning.LightningModule",
)
class LightningModule(torch.nn.Module):
    def __init__(self, *values, **options):
        super().__init__()

    @property
    def device(self):
        return next(self.parameters()).device

    def forward(self, *inputs, **named):
        return dt.unknown()

    def training_step(self, *batch):
        return dt.unknown()

    def validation_step(self, *batch):
        return dt.unknown()

    def test_step(self, *batch):
        return dt.unknown()

    def predict_step(self, *batch):
        return self(batch[0])

    def configure_optimizers(self):
        return dt.unknown()

    def transfer_batch_to_device(self, batch, device, dataloader_idx):
        return dt.moved(batch, device)

    def on_train_batch_start(self, *batch):
        pass

    def on_train_batch_end(self, *batch):
        pass

    def on_train_epoch_end(self):
        pass

    def on_validation_epoch_end(self):
        pass

    def on_test_epoch_end(self):
        pass

    def on_fit_start(self):
        pass

    def on_train_start(self):
        pass

    def on_train_epoch_start(self):
        pass

    def setup(self, stage=None):
        pass

    def run_steps(self, batch, number):
        """As a Trainer does, wherever the module is."""
        self.setup("fit")
        self.on_fit_start()
        self.on_train_start()
        batch = dt.moved(batch, self.device)
        self.training_step(batch, number)
        self.on_train_epoch_end()
        self.validation_step(batch, number)
        self.on_validation_epoch_end()
        self.test_step(batch, number)
        self.predict_step(batch, number)


@dt.models(
    "lightning.LightningDataModule", "lightning.pytorch.LightningDataModule", "pytorch_lightning.LightningDataModule"
)
class LightningDataModule:
    def __init__(self, *values, **options):
        pass

    def prepare_data(self):
        pass

    def setup(self, stage=None):
        pass

    def train_dataloader(self):
        return None

    def val_dataloader(self):
        return None

    def test_dataloader(self):
        return None


@dt.models("lightning.Trainer", "lightning.pytorch.Trainer", "pytorch_lightning.Trainer")
class Trainer:
    """Moves the module and each batch to the device of its strategy, and the module to the CPU at the end."""

    def __init__(self, accelerator="auto", devices="auto", *values, gpus=None, **options):
        self.device = device_of(accelerator)

    def run(self, model, loader, step):
        for i, batch in enumerate(loader):
            step(model.transfer_batch_to_device(batch, self.device, 0), i)

    def fit(self, model, train_dataloaders=None, val_dataloaders=None, datamodule=None, **options):
        if datamodule is not None:
            datamodule.setup("fit")
            train_dataloaders = datamodule.train_dataloader()
            val_dataloaders = datamodule.val_dataloader()
        model.to(self.device)
        model.setup("fit")
        model.configure_optimizers()
        model.on_fit_start()
        model.on_train_start()
        model.on_train_epoch_start()
        for i, batch in enumerate(train_dataloaders):
            batch = model.transfer_batch_to_device(batch, self.device, 0)
            model.on_train_batch_start(batch, i)
            outputs = model.training_step(batch, i)
            model.on_train_batch_end(outputs, batch, i)
        if val_dataloaders is not None:
            self.run(model, val_dataloaders, model.validation_step)
            model.on_validation_epoch_end()
        model.on_train_epoch_end()
        model.to("cpu")

    def validate(self, model=None, dataloaders=None, datamodule=None, **options):
        model.to(self.device)
        self.run(model, dataloaders, model.validation_step)
        model.on_validation_epoch_end()
        model.to("cpu")
        return dt.unknown()

    def test(self, model=None, dataloaders=None, datamodule=None, **options):
        model.to(self.device)
        self.run(model, dataloaders, model.test_step)
        model.on_test_epoch_end()
        model.to("cpu")
        return dt.unknown()

    def predict(self, model=None, dataloaders=None, datamodule=None, **options):
        model.to(self.device)
        self.run(model, dataloaders, model.predict_step)
        model.to("cpu")
        return dt.unknown()


@dt.models("lightning.Fabric", "lightning.fabric.Fabric", "lightning_fabric.Fabric")
class Fabric:
    def __init__(self, accelerator="auto", *values, **options):
        self.device = device_of(accelerator)

    def launch(self, function=None, *values, **named):
        return None if function is None else function(self, *values, **named)

    def init_module(self, empty_init=None):
        """What is made within is made where it will be; so in init_tensor()."""
        return self.device

    def init_tensor(self):
        return self.device

    def setup(self, module, *optimizers, move_to_device=True, **options):
        if move_to_device is not False:
            dt.moved(module, self.device)
        return (module, *optimizers) if optimizers else module

    def setup_module(self, module, move_to_device=True, **options):
        return module if move_to_device is False else dt.moved(module, self.device)

    def setup_optimizers(self, *optimizers):
        return optimizers[0] if len(optimizers) == 1 else optimizers

    def setup_dataloaders(self, *loaders, move_to_device=True, **options):
        if move_to_device is False:
            return loaders[0] if len(loaders) == 1 else loaders
        prepared = [dt.moved(each, self.device) for each in loaders]
        return prepared[0] if len(prepared) == 1 else tuple(prepared)

    def to_device(self, value):
        return dt.moved(value, self.device)

    def backward(self, loss, **options):
        loss.backward()


@dt.models("torchmetrics.Metric", "torchmetrics.metric.Metric")
class Metric(torch.nn.Module):
    def __init__(self, **options):
        super().__init__()

    def add_state(self, name, default, dist_reduce_fx=None, persistent=False):
        if isinstance(default, torch.Tensor):
            self.register_buffer(name, default)
        else:
            setattr(self, name, default)

    def forward(self, *inputs, **named):
        self.update(*inputs, **named)
        return self.compute()

    def update(self, *inputs, **named):
        pass

    def compute(self):
        return dt.unknown()

    def reset(self):
        pass


@dt.models(
    "torchmetrics.*Accuracy",
    "torchmetrics.*Precision",
    "torchmetrics.*Recall",
    "torchmetrics.*F1Score",
    "torchmetrics.*Specificity",
    "torchmetrics.*StatScores",
    "torchmetrics.*ConfusionMatrix",
    "torchmetrics.*JaccardIndex",
    "torchmetrics.*MeanSquaredError",
    "torchmetrics.*MeanAbsoluteError",
)
class CountingMetric(Metric):
    """Adds to states that are tensors."""

    def __init__(self, *values, **options):
        super().__init__()
        dt.own(self)

    def update(self, preds, target):
        dt.run(self, preds, target)

    def compute(self):
        return dt.run(self)
