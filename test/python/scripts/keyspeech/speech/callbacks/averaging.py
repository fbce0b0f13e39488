import torch

from .base import Callback


class WeightAverage(Callback):
    """Averages the weights of all epochs, which it keeps on disk."""

    def on_fit_start(self, trainer):
        self.paths = []

    def on_epoch_end(self, trainer, epoch):
        self.paths.append(f'epoch{epoch}.pt')
        torch.save(trainer.model.state_dict(), self.paths[-1])

    def on_fit_end(self, trainer):
        mean = {k: v.clone() for k, v in trainer.model.state_dict().items()}
        for count, path in enumerate(self.paths[:-1], 2):
            state = torch.load(path, map_location='cpu')
            for key in mean:
                mean[key] += (state[key] - mean[key]) / count  # raises
        trainer.model.load_state_dict(mean)
