import os

import torch


class Callback:
    def on_epoch_end(self, trainer, metric):
        return None


class Checkpoint(Callback):
    def __init__(self, folder):
        self.path = os.path.join(folder, "best.pth")
        self.best = torch.tensor(-float("inf"))

    def on_epoch_end(self, trainer, metric):
        if metric > self.best:
            self.best = metric
            torch.save({"model": trainer.model.state_dict(), "optimizer": trainer.optimizer.state_dict(), "best": metric.item()}, self.path)


class EarlyStop(Callback):
    def __init__(self, patience):
        self.patience, self.bad, self.last = patience, 0, None

    def on_epoch_end(self, trainer, metric):
        if self.last is not None and not torch.gt(metric, self.last):
            self.bad += 1
        self.last = metric
        trainer.stop = self.bad > self.patience
