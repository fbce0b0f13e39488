import torch

from .base import Callback


class GradientNorm(Callback):
    def on_fit_start(self, trainer):
        self.norms = torch.zeros(0)

    def on_step_end(self, trainer, loss):
        grads = [p.grad.norm() for p in trainer.model.parameters() if p.grad is not None]
        self.norms = torch.cat([self.norms, torch.stack(grads).norm().cpu()[None]])

    def on_fit_end(self, trainer):
        print('gradient norm', self.norms.numpy().mean())


class PlateauLR(Callback):
    def on_fit_start(self, trainer):
        self.best = torch.tensor(float('inf'))
        self.scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(trainer.optimizer, patience=1)

    def on_step_end(self, trainer, loss):
        self.best = torch.minimum(self.best, torch.tensor(loss))

    def on_epoch_end(self, trainer, epoch):
        self.scheduler.step(self.best)


class WeightNoise(Callback):
    def on_fit_start(self, trainer):
        self.generator = torch.Generator(device='cpu').manual_seed(self.settings.seed)

    @torch.no_grad()
    def on_step_end(self, trainer, loss):
        for p in trainer.model.parameters():
            p.add_(torch.randn(p.shape, generator=self.generator).to(p), alpha=1e-4)
