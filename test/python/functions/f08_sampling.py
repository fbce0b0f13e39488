import contextlib
import math
from dataclasses import dataclass
from typing import Optional, Union

import torch
import torch.nn as nn
import torch.nn.functional as F


class UNet(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.dim = dim
        self.time = nn.Linear(8, dim)
        self.conv = nn.Conv2d(dim, dim, 3, padding=1)

    def time_embedding(self, t):
        half = 4
        freqs = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32, device=t.device) / half)
        args = t.float()[:, None] * freqs[None]
        return torch.cat([args.cos(), args.sin()], dim=-1)

    def forward(self, x, t):
        if not torch.is_tensor(t):
            t = torch.tensor([t], dtype=torch.long, device=x.device)
        elif t.dim() == 0:
            t = t[None].to(x.device)
        t = t.expand(x.shape[0])
        return self.conv(x) + self.time(self.time_embedding(t))[:, :, None, None]


def _extract(a, t, x_shape):
    b, *_ = t.shape
    out = a.gather(-1, t)
    return out.reshape(b, *((1,) * (len(x_shape) - 1)))


class GaussianDiffusion(nn.Module):
    def __init__(self, model, timesteps=20):
        super().__init__()
        self.model = model
        self.num_timesteps = timesteps
        betas = torch.linspace(1e-4, 0.02, timesteps, dtype=torch.float64)
        alphas_cumprod = torch.cumprod(1.0 - betas, dim=0)
        register_buffer = lambda name, val: self.register_buffer(name, val.to(torch.float32))
        register_buffer("betas", betas)
        register_buffer("alphas_cumprod", alphas_cumprod)
        register_buffer("sqrt_ac", torch.sqrt(alphas_cumprod))
        register_buffer("sqrt_one_minus_ac", torch.sqrt(1.0 - alphas_cumprod))

    def q_sample(self, x, t, noise=None):
        noise = torch.randn_like(x) if noise is None else noise
        return _extract(self.sqrt_ac, t, x.shape) * x + _extract(self.sqrt_one_minus_ac, t, x.shape) * noise

    def forward(self, x):
        t = torch.randint(0, self.num_timesteps, (x.shape[0],), device=x.device).long()
        noise = torch.randn_like(x)
        return F.mse_loss(self.model(self.q_sample(x, t, noise), t), noise)


def diffusion_training_step():
    diffusion = GaussianDiffusion(UNet()).to("cuda")
    opt = torch.optim.Adam(diffusion.parameters(), lr=1e-4)
    loss = diffusion(torch.randn(2, 4, 6, 6).to("cuda"))
    loss.backward()
    opt.step()


class DDPM:
    def __init__(self, steps=20, beta_start=1e-4, beta_end=0.02, device="cuda"):
        self.steps = steps
        self.device = device
        self.beta = torch.linspace(beta_start, beta_end, steps)
        self.alpha = 1.0 - self.beta
        self.alpha_hat = torch.cumprod(self.alpha, dim=0)

    def noise_images(self, x, t):
        a = torch.sqrt(self.alpha_hat[t])[:, None, None, None]  # raises
        b = torch.sqrt(1 - self.alpha_hat[t])[:, None, None, None]
        eps = torch.randn_like(x)
        return a * x + b * eps, eps

    def sample_timesteps(self, n):
        return torch.randint(low=1, high=self.steps, size=(n,))

    @torch.no_grad()
    def sample(self, model, n):
        x = torch.randn((n, 4, 6, 6)).to(self.device)
        for i in reversed(range(1, self.steps, 7)):
            t = (torch.ones(n) * i).long().to(self.device)
            noise = torch.randn_like(x) if i > 1 else torch.zeros_like(x)
            alpha, alpha_hat, beta = self.alpha[i], self.alpha_hat[i], self.beta[i]
            x = 1 / torch.sqrt(alpha) * (x - (1 - alpha) / torch.sqrt(1 - alpha_hat) * model(x, t))
            x = x + torch.sqrt(beta) * noise
        return x.clamp(-1, 1)


def ddpm_sampling_with_scalars():
    return DDPM().sample(UNet().to("cuda"), 2).cpu().numpy()


def ddpm_noise_with_a_table_on_the_cpu():
    ddpm = DDPM()
    model = UNet().to(ddpm.device)
    images = torch.randn(2, 4, 6, 6).to(ddpm.device)
    t = ddpm.sample_timesteps(images.shape[0]).to(ddpm.device)
    x_t, noise = ddpm.noise_images(images, t)
    return F.mse_loss(model(x_t, t), noise)


@dataclass
class SchedulerOutput:
    prev_sample: torch.Tensor
    pred_x0: Optional[torch.Tensor] = None


class EulerScheduler:
    def __init__(self, n=100):
        betas = torch.linspace(0.00085**0.5, 0.012**0.5, n) ** 2
        self.alphas_cumprod = torch.cumprod(1 - betas, 0)
        self.sigmas = None
        self.timesteps = None

    def set_timesteps(self, steps, device: Union[str, torch.device] = None):
        table = ((1 - self.alphas_cumprod) / self.alphas_cumprod) ** 0.5
        idx = torch.linspace(len(table) - 1, 0, steps).long()
        self.sigmas = torch.cat([table[idx], torch.zeros(1)]).to(device)
        self.timesteps = idx.to(device)
        self.sigmas = self.sigmas.to("cpu")

    def add_noise(self, x, noise, i):
        sigma = self.sigmas[i].flatten()
        while sigma.dim() < x.dim():
            sigma = sigma.unsqueeze(-1)
        return x + noise * sigma  # raises

    def step(self, eps, i, x):
        dt = self.sigmas[i + 1] - self.sigmas[i]
        return SchedulerOutput(prev_sample=x + eps * dt, pred_x0=x - eps * self.sigmas[i])


def euler_loop():
    model = UNet().to("cuda:0").eval()
    sched = EulerScheduler()
    sched.set_timesteps(4, device="cuda:0")
    latents = torch.randn(1, 4, 6, 6, device="cuda:0") * sched.sigmas.max()
    with torch.no_grad():
        for i, t in enumerate(sched.timesteps):
            latents = sched.step(model(latents, t), i, latents).prev_sample
    return latents.abs().mean().item()


def euler_image_to_image():
    sched = EulerScheduler()
    sched.set_timesteps(4, device="cuda:0")
    image = torch.randn(2, 4, 6, 6, device="cuda:0")
    noise = torch.randn_like(image)
    return sched.add_noise(image, noise, [1, 2])


def _randn_tensor(shape, generator=None, device=None, dtype=None):
    rand_device = device
    device = device or torch.device("cpu")
    if generator is not None and generator.device.type != torch.device(device).type:
        if generator.device.type == "cpu":
            rand_device = "cpu"
    return torch.randn(shape, generator=generator, device=rand_device, dtype=dtype).to(device)


def seeded_latents():
    g = torch.Generator().manual_seed(0)
    latents = _randn_tensor((1, 4, 6, 6), generator=g, device=torch.device("cuda"))
    return UNet().cuda()(latents, torch.tensor(3))


def seeded_latents_on_the_device():
    generator = torch.Generator()
    generator.manual_seed(1234)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    latents = torch.randn((1, 4, 6, 6), generator=generator, device=device)  # raises
    return UNet().to(device)(latents, 3)


def _top_k_top_p(logits, top_k=0, top_p=0.9, filter_value=-float("inf")):
    if top_k > 0:
        indices_to_remove = logits < torch.topk(logits, top_k)[0][..., -1, None]
        logits = logits.masked_fill(indices_to_remove, filter_value)
    sorted_logits, sorted_indices = torch.sort(logits, descending=True)
    cumulative = sorted_logits.softmax(-1).cumsum(-1)
    remove = cumulative > top_p
    remove[..., 1:] = remove[..., :-1].clone()
    remove[..., 0] = 0
    return logits.masked_fill(remove.scatter(-1, sorted_indices, remove), filter_value)


def _repetition_penalty(logits, ids, penalty=1.2):
    score = torch.gather(logits, 1, ids)  # raises
    score = torch.where(score < 0, score * penalty, score / penalty)
    return logits.scatter(1, ids, score)


def nucleus_sampling():
    logits = torch.randn(2, 10, device="cuda")
    ids = torch.zeros(2, 1, dtype=torch.long, device="cuda")
    for _ in range(2):
        probs = F.softmax(_top_k_top_p(logits, top_k=5), dim=-1)
        ids = torch.cat([ids, torch.multinomial(probs, 1)], dim=-1)
    return ids.tolist()


def sampling_with_repetition_penalty():
    logits = torch.randn(2, 10, device="cuda")
    ids = torch.zeros(2, 1, dtype=torch.long)
    logits = _repetition_penalty(logits, ids)
    probs = F.softmax(_top_k_top_p(logits, top_k=5), dim=-1)
    return torch.multinomial(probs, 1)


class BeamSearch:
    def __init__(self, beams, vocab, eos=2, device=None):
        self.beams, self.vocab, self.eos = beams, vocab, eos
        self.scores = torch.zeros(beams, device=device)
        self.done = torch.zeros(beams, dtype=torch.bool, device=device)

    def advance(self, logp):
        total = self.scores[:, None] + logp.masked_fill(self.done[:, None], -1e9)  # raises
        self.scores, flat = total.flatten().topk(self.beams)
        beam = torch.div(flat, self.vocab, rounding_mode="floor")
        token = flat % self.vocab
        self.done = self.done[beam] | (token == self.eos)
        return beam, token


def beam_search():
    table = nn.Embedding(7, 7).to("cuda:1")
    search = BeamSearch(3, 7, device=table.weight.device)
    tokens = torch.ones(3, 1, dtype=torch.long, device="cuda:1")
    for _ in range(3):
        beam, token = _advance(search, table, tokens)
        tokens = torch.cat([tokens[beam], token[:, None]], 1)
    return tokens


def _advance(search, table, tokens):
    total = search.scores[:, None] + table(tokens[:, -1]).log_softmax(-1)
    search.scores, flat = total.flatten().topk(search.beams)
    return torch.div(flat, search.vocab, rounding_mode="floor"), flat % search.vocab


def beam_search_without_a_device():
    table = nn.Embedding(7, 7).to("cuda:1")
    search = BeamSearch(3, 7)
    tokens = torch.ones(3, 1, dtype=torch.long, device="cuda:1")
    beam, token = search.advance(table(tokens[:, -1]).log_softmax(-1))
    return torch.cat([tokens[beam], token[:, None]], 1)


def classifier_free_guidance():
    device = "cuda"
    model = UNet().to(device)
    latents = torch.randn(1, 4, 6, 6, device=device)
    context = torch.autocast("cuda", enabled=False) if "cuda" in device else contextlib.nullcontext()
    with torch.no_grad(), context:
        for t in torch.linspace(19, 0, 3).long():
            noise_pred = model(torch.cat([latents] * 2), t)
            uncond, text = noise_pred.chunk(2)
            latents = latents - 0.1 * (uncond + 7.5 * (text - uncond))
    images = (latents / 2 + 0.5).clamp(0, 1)
    return images.permute(0, 2, 3, 1).numpy()  # raises
