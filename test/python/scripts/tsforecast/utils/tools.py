import os

import torch


def adjust_learning_rate(optimizer, epoch, args):
    if args.lradj == 'type1':
        lr = args.learning_rate * (0.5 ** ((epoch - 1) // 1))
    else:
        lr = {2: 5e-5, 4: 1e-5}.get(epoch, args.learning_rate)
    for param_group in optimizer.param_groups:
        param_group['lr'] = lr


class EarlyStopping:
    def __init__(self, patience=7, delta=0):
        self.patience = patience
        self.delta = delta
        self.counter = 0
        self.best_score = None
        self.early_stop = False

    def __call__(self, val_loss, model, path):
        score = -val_loss
        if self.best_score is None or score >= self.best_score + self.delta:
            self.best_score = score
            os.makedirs(path, exist_ok=True)
            torch.save(model.state_dict(), os.path.join(path, 'checkpoint.pth'))
            self.counter = 0
        else:
            self.counter += 1
            self.early_stop = self.counter >= self.patience


class PinballLoss:
    def __init__(self, quantiles=(0.1, 0.5, 0.9)):
        self.quantiles = torch.tensor(quantiles)

    def __call__(self, pred, true):
        err = (true - pred).unsqueeze(-1)
        upper = self.quantiles.view(1, 1, 1, -1).to(err) * err
        lower = (self.quantiles.to(err.device) - 1) * err
        return torch.maximum(upper, lower).mean()


class HorizonWeightedLoss(torch.nn.Module):
    """Squared errors that matter less the further away they are."""

    def __init__(self, horizon, decay=0.9):
        super().__init__()
        self.weight = decay ** torch.arange(horizon, dtype=torch.float32)
        self.register_buffer('total', self.weight.sum())

    def forward(self, pred, true):
        per_step = ((pred - true) ** 2).mean(dim=(0, 2))
        return (per_step * self.weight).sum() / self.total  # raises


def metric(pred, true):
    mae = abs(pred - true).mean()
    mse = ((pred - true) ** 2).mean()
    return mae, mse
