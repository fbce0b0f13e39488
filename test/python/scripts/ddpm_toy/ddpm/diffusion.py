import numpy as np
import torch


class Diffusion:
    """tables in numpy, float64; picked per call and sent to the batch"""

    def __init__(self, steps=8):
        betas = np.linspace(1e-3, 0.2, steps, dtype=np.float64)
        self.betas, self.bars = betas, np.cumprod(1.0 - betas)
        self.steps = steps

    @staticmethod
    def _pick(arr, t, shape):
        res = torch.from_numpy(arr).to(device=t.device)[t].float()
        return res.view(-1, *[1] * (len(shape) - 1))

    def q_sample(self, x0, t, noise):
        ab = self._pick(self.bars, t, x0.shape)
        return ab.sqrt() * x0 + (1 - ab).sqrt() * noise

    def training_loss(self, net, x0):
        t = torch.randint(self.steps, (len(x0),)).to(x0.device)
        noise = torch.randn(x0.shape).type_as(x0)
        return (net(self.q_sample(x0, t, noise), t) - noise).pow(2).mean()

    @torch.no_grad()
    def sample(self, net, n, dim):
        device = next(net.parameters()).device
        x = torch.randn(n, dim, device=device)
        for i in range(self.steps - 1, -1, -1):
            t = torch.full((n,), i, device=device)
            beta, bar = torch.tensor(self.betas[i]).float(), torch.tensor(self.bars[i]).float()
            x = (x - beta / (1 - bar).sqrt() * net(x, t)) / (1 - beta).sqrt()
            if i:
                x += beta.sqrt() * torch.randn_like(x)
        return x
