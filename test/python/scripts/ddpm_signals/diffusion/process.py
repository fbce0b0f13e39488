import torch
import torch.nn.functional as F

from diffusion import schedules
from diffusion.schedules import extract


class Diffusion:
    """Forward process, training loss and samplers. Tables stay on the CPU."""

    def __init__(self, steps, schedule="linear", parameterization="eps", weighting="none"):
        self.steps = steps
        self.parameterization = parameterization
        self.weighting = weighting
        self.betas = schedules.get(schedule, steps)
        self.alphas = 1 - self.betas
        self.alpha_bar = self.alphas.cumprod(0)
        self.snr = self.alpha_bar / (1 - self.alpha_bar)
        previous = torch.cat([torch.ones(1), self.alpha_bar[:-1]])
        self.posterior_variance = self.betas * (1 - previous) / (1 - self.alpha_bar)

    def q_sample(self, x, t, noise):
        signal = extract(self.alpha_bar, t, x.shape).sqrt()
        return signal * x + (1 - extract(self.alpha_bar, t, x.shape)).sqrt() * noise

    def velocity(self, x, t, noise):
        bar = self.alpha_bar[t].view(-1, 1, 1)  # raises
        return bar.sqrt() * noise - (1 - bar).sqrt() * x

    def loss(self, model, x, labels=None):
        t = torch.randint(0, self.steps, (x.size(0),)).to(x.device)
        noise = torch.randn_like(x)
        noisy = self.q_sample(x, t, noise)
        target = noise if self.parameterization == "eps" else self.velocity(x, t, noise)
        error = F.mse_loss(model(noisy, t, labels), target, reduction="none").mean((1, 2))
        if self.weighting == "min-snr":
            weight = extract(self.snr, t, error.shape).clamp(max=5) / extract(self.snr, t, error.shape)
            error = error * weight
        return error.mean()

    @torch.no_grad()
    def ancestral(self, model, shape, device, labels=None):
        x = torch.randn(shape, device=device)
        for step in reversed(range(self.steps)):
            t = torch.full((shape[0],), step, device=device)
            eps = model(x, t, labels)
            mean = (x - self.betas[step] / (1 - self.alpha_bar[step]).sqrt() * eps) / self.alphas[step].sqrt()
            x = mean if step == 0 else mean + self.posterior_variance[step].sqrt() * torch.randn_like(x)
        return x

    @torch.no_grad()
    def ddim(self, model, shape, device, labels=None, stride=2):
        x = torch.randn(shape).to(device)
        timeline = list(range(0, self.steps, stride))[::-1]
        for step, following in zip(timeline, timeline[1:] + [-1]):
            t = torch.full((shape[0],), step, dtype=torch.long)
            eps = model(x, t, labels)
            bar = self.alpha_bar[step]
            start = (x - (1 - bar).sqrt() * eps) / bar.sqrt()
            target = self.alpha_bar[following] if following >= 0 else torch.ones(())
            x = target.sqrt() * start + (1 - target).sqrt() * eps
        return x
