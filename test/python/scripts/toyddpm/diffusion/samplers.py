from abc import ABC, abstractmethod

import torch


class Sampler(ABC):
    def __init__(self, diffusion, steps):
        self.diffusion = diffusion
        self.steps = steps

    @abstractmethod
    def times(self):
        ...

    @abstractmethod
    def denoise(self, x, now, after, y, guidance):
        ...

    def __call__(self, shape, y, guidance=1.0):
        generator = torch.Generator().manual_seed(11)
        x = torch.randn(shape, generator=generator).to(self.diffusion.device)
        for now, after in self.times():
            x = self.denoise(x, now, after, y, guidance)
        return x


class DDIM(Sampler):
    def times(self):
        grid = torch.linspace(-1, self.diffusion.timesteps - 1, self.steps + 1).long().flip(0)
        return zip(grid[:-1], grid[1:])

    def denoise(self, x, now, after, y, guidance):
        d = self.diffusion
        t = torch.full((x.shape[0],), int(now), device=x.device, dtype=torch.long)
        x0 = d.predict_x0(x, t, y, guidance)
        bar = d.alphas_bar[now]
        bar_after = d.alphas_bar[after] if after >= 0 else torch.ones(())
        eps = (x - bar.sqrt() * x0) / (1 - bar).sqrt()
        return bar_after.sqrt() * x0 + (1 - bar_after).sqrt() * eps


class DDPM(Sampler):
    def times(self):
        last = self.diffusion.timesteps
        return zip(reversed(range(last)), reversed(range(-1, last - 1)))

    def denoise(self, x, now, after, y, guidance):
        d = self.diffusion
        t = x.new_full((x.shape[0],), now, dtype=torch.long)
        x0 = d.predict_x0(x, t, y, guidance)
        post = {k: v[t] for k, v in d.posterior.items()}  # raises
        shape = (-1, 1, 1, 1)
        mean = post['coef_x0'].view(shape) * x0 + post['coef_xt'].view(shape) * x
        if after < 0:
            return mean
        return mean + (0.5 * post['log_variance'].view(shape)).exp() * torch.randn_like(x)
