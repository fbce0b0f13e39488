import math

import torch


class NoiseSchedule:
    def __init__(self, steps, device="cpu"):
        t = torch.linspace(0, 1, steps + 1, dtype=torch.float64)
        bar = torch.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2
        self.betas = (1 - bar[1:] / bar[:-1]).clamp(max=0.99).float()
        self.alpha_bar = torch.cumprod(1 - self.betas, 0)
        self.steps = steps
        self.to(device)

    def to(self, device):
        for name, value in vars(self).items():
            if isinstance(value, torch.Tensor):
                setattr(self, name, value.to(device))
        return self

    def state_dict(self):
        return {k: v for k, v in vars(self).items() if torch.is_tensor(v)}

    def load_state_dict(self, state):
        for k, v in state.items():
            setattr(self, k, v)

    def noisy(self, x, t, eps):
        ab = self.alpha_bar[t].view(-1, 1, 1, 1)
        return ab.sqrt() * x + (1 - ab).sqrt() * eps

    def denoise(self, x, t, eps):
        i = int(t[0])
        beta, ab = self.betas[i], self.alpha_bar[i]
        mean = (x - beta / (1 - ab).sqrt() * eps) / (1 - beta).sqrt()
        return mean + beta.sqrt() * torch.randn_like(x) if i else mean

    def loss_weight(self, t):
        snr = self.alpha_bar / (1 - self.alpha_bar)
        return snr.clamp(max=5.0).gather(0, t)  # raises
