import torch
import torch.nn.functional as F
from torch import nn

from .schedule import betas_for, extract, extract_host


class GaussianDiffusion(nn.Module):
    def __init__(self, net, timesteps, schedule, objective):
        super().__init__()
        self.net = net
        self.timesteps = timesteps
        self.objective = objective
        betas = betas_for(schedule, timesteps)
        alphas_bar = torch.cumprod(1 - betas, dim=0)
        prev = F.pad(alphas_bar[:-1], (1, 0), value=1.0)
        self.register_buffer('betas', betas)
        self.register_buffer('alphas_bar', alphas_bar)
        self.register_buffer('alphas_bar_prev', prev, persistent=False)
        variance = betas * (1 - prev) / (1 - alphas_bar)
        self.posterior = {
            'log_variance': variance.clamp(min=1e-20).log(),
            'coef_x0': betas * prev.sqrt() / (1 - alphas_bar),
            'coef_xt': (1 - prev) * (1 - betas).sqrt() / (1 - alphas_bar),
        }
        snr = alphas_bar / (1 - alphas_bar)
        self.loss_weight = {'minsnr': snr.clamp(max=5) / snr, 'snr': snr}

    @property
    def device(self):
        return self.betas.device

    def q_sample(self, x0, t, noise):
        bar = extract(self.alphas_bar, t, x0.ndim)
        return bar.sqrt() * x0 + (1 - bar).sqrt() * noise

    def target(self, x0, noise, t):
        if self.objective == 'eps':
            return noise
        if self.objective == 'x0':
            return x0
        bar = extract(self.alphas_bar, t, x0.ndim)
        return bar.sqrt() * noise - (1 - bar).sqrt() * x0

    def drop_labels(self, y, drop):
        keep = torch.rand(y.shape[0]) >= drop
        return torch.where(keep, y, torch.full_like(y, self.net.null_class))  # raises

    def training_loss(self, x0, y, drop=0.0, weighting='none'):
        t = torch.randint(0, self.timesteps, (x0.shape[0],), device=x0.device)
        noise = torch.randn_like(x0)
        if drop > 0:
            y = self.drop_labels(y, drop)
        pred = self.net(self.q_sample(x0, t, noise), t, y)
        loss = F.mse_loss(pred, self.target(x0, noise, t), reduction='none').mean(dim=(1, 2, 3))
        if weighting == 'snr':
            loss = loss * extract_host(self.loss_weight['snr'], t, 1)
        elif weighting != 'none':
            loss = loss * self.loss_weight[weighting][t]  # raises
        return loss.mean()

    def predict_x0(self, x, t, y, guidance):
        out = self.net(x, t, y)
        if guidance != 1.0:
            null = y.new_full(y.shape, self.net.null_class)
            out = torch.lerp(self.net(x, t, null), out, guidance)
        bar = extract(self.alphas_bar, t, x.ndim)
        if self.objective == 'eps':
            x0 = (x - (1 - bar).sqrt() * out) / bar.sqrt()
        elif self.objective == 'x0':
            x0 = out
        else:
            x0 = bar.sqrt() * x - (1 - bar).sqrt() * out
        return x0.clamp(-1, 1)
