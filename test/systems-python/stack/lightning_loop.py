"""Lightning starts the second process itself."""

import lightning
import net
import torch


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = net.make_model()

    def training_step(self, batch, index):
        inputs, labels = batch
        loss = torch.nn.functional.cross_entropy(self.net(inputs), labels)
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def on_train_epoch_end(self):
        loss = self.trainer.callback_metrics["loss"].item()  # of all ranks
        if self.global_rank == 0:
            print(f"step {self.current_epoch}: loss {loss:.4f}", flush=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


if __name__ == "__main__":
    lightning.seed_everything(0)
    trainer = lightning.Trainer(
        max_epochs=4,
        accelerator="gpu",
        devices=2,
        strategy="ddp",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    trainer.fit(Module(), net.make_loader())
    assert trainer.world_size == 2
