import torch


def _betas(kind, n):
    if kind == 'linear':
        return torch.linspace(1e-4, 2e-2, n)
    if kind == 'cosine':
        t = torch.linspace(0, 1, n + 1)
        bar = torch.cos((t + 0.008) / 1.008 * torch.pi / 2) ** 2
        return (1 - bar[1:] / bar[:-1]).clamp(max=0.999)
    raise ValueError(kind)


class Schedule:
    """Noise tables.  `extract` picks from them for a batch of timesteps."""

    def __init__(self, kind, steps, device):
        self.steps = steps
        betas = _betas(kind, steps)
        alphas = 1 - betas
        bar = alphas.cumprod(0)
        self.sqrt_bar = bar.sqrt().to(device)
        self.sqrt_one_minus_bar = (1 - bar).sqrt().to(device)
        self.bar = bar
        # weights of the loss; clipped signal to noise ratio
        snr = bar / (1 - bar)
        self.loss_weight = snr.clamp(max=5.0) / snr
        self.device = torch.device(device)

    @staticmethod
    def extract(table, t, like):
        return table.gather(0, t).view(-1, *([1] * (like.dim() - 1))).to(like.device)  # raises

    def add_noise(self, x0, t, noise):
        return self.extract(self.sqrt_bar, t, x0) * x0 + self.extract(self.sqrt_one_minus_bar, t, x0) * noise

    def weight(self, t, x):
        return self.extract(self.loss_weight, t, x)

    def alpha_bar(self, step):
        """One number, for the samplers, which go through the steps one by one."""
        return self.bar[step] if step >= 0 else torch.tensor(1.0)
