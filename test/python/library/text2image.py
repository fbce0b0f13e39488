"""A small latent text-to-image pipeline."""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def timestep_embedding(timesteps, dim, max_period=10000):
    freqs = torch.exp(-math.log(max_period) * torch.arange(dim // 2, dtype=torch.float32, device=timesteps.device) / (dim // 2))
    args = timesteps[:, None].float() * freqs[None]
    return torch.cat([args.cos(), args.sin()], dim=-1)


def guidance_scale_embedding(w, dim=16):
    emb = torch.exp(torch.arange(dim // 2, dtype=w.dtype) * -(math.log(10000.0) / (dim // 2 - 1)))
    emb = w[:, None] * 1000.0 * emb[None]  # raises
    return torch.cat([emb.sin(), emb.cos()], dim=1)


def randn_tensor(shape, generator=None, device=None, dtype=None):
    rand_device = generator.device if generator is not None else device
    return torch.randn(shape, generator=generator, device=rand_device, dtype=dtype).to(device)


class TextEncoder(nn.Module):
    def __init__(self, vocab_size=64, dim=16, max_length=8):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, dim)
        self.position_embedding = nn.Embedding(max_length, dim)
        self.register_buffer("position_ids", torch.arange(max_length)[None], persistent=False)
        self.layer = nn.TransformerEncoderLayer(dim, 2, 32, dropout=0.0, batch_first=True)

    def forward(self, input_ids):
        t = input_ids.shape[-1]
        x = self.token_embedding(input_ids) + self.position_embedding(self.position_ids[:, :t])
        return self.layer(x, src_mask=torch.full((t, t), float("-inf"), device=x.device).triu(1))


class CrossAttention(nn.Module):
    def __init__(self, dim, context_dim):
        super().__init__()
        self.to_q, self.to_kv = nn.Linear(dim, dim), nn.Linear(context_dim, 2 * dim)
        self.store = None

    def forward(self, x, context):
        k, v = self.to_kv(context).chunk(2, dim=-1)
        probs = (self.to_q(x) @ k.transpose(-1, -2) / math.sqrt(x.shape[-1])).softmax(-1)
        if self.store is not None:
            probs = self.store(probs)
        return probs @ v


class UNet(nn.Module):
    def __init__(self, channels=4, dim=16):
        super().__init__()
        self.dim = dim
        self.conv_in, self.conv_out = nn.Conv2d(channels, dim, 3, padding=1), nn.Conv2d(dim, channels, 3, padding=1)
        self.time = nn.Linear(dim, dim)
        self.attn = CrossAttention(dim, dim)

    def forward(self, sample, timestep, context):
        if not torch.is_tensor(timestep):
            timestep = torch.tensor([timestep], device=sample.device)
        timestep = timestep.reshape(-1).to(sample.device).expand(sample.shape[0])
        h = self.conv_in(sample) + self.time(timestep_embedding(timestep, self.dim))[:, :, None, None]
        tokens = h.flatten(2).transpose(1, 2)
        h = h + self.attn(tokens, context).transpose(1, 2).reshape(h.shape)
        return self.conv_out(F.silu(h))


class DiagonalGaussian:
    def __init__(self, moments):
        self.mean, logvar = moments.chunk(2, dim=1)
        self.std = torch.exp(0.5 * logvar.clamp(-30.0, 20.0))

    def sample(self, generator=None):
        return self.mean + self.std * randn_tensor(self.mean.shape, generator, self.mean.device, self.mean.dtype)

    def mode(self):
        return self.mean


class Vae(nn.Module):
    scaling_factor = 0.18215

    def __init__(self, channels=4, tile=4, overlap=2):
        super().__init__()
        self.encoder = nn.Conv2d(3, 2 * channels, 2, stride=2)
        self.decoder = nn.ConvTranspose2d(channels, 3, 2, stride=2)
        self.tile, self.overlap = tile, overlap

    def encode(self, x):
        return DiagonalGaussian(self.encoder(x))

    def decode(self, z):
        return self.decoder(z)  # raises

    def blend_v(self, above, below, extent):
        for y in range(extent):
            below[:, :, y] = above[:, :, -extent + y] * (1 - y / extent) + below[:, :, y] * (y / extent)
        return below

    def blend_h(self, left, right, extent):
        ramp = torch.linspace(0, 1, extent)
        right[..., :extent] = left[..., -extent:] * (1 - ramp) + right[..., :extent] * ramp  # raises
        return right

    def tiled_decode(self, z, axis="rows"):
        dim, step = (2, self.tile - self.overlap) if axis == "rows" else (3, self.tile - self.overlap)
        tiles = [self.decode(z.narrow(dim, i, self.tile)) for i in range(0, z.shape[dim] - self.overlap, step)]
        blend, out = self.blend_v if axis == "rows" else self.blend_h, tiles[:1]
        for tile in tiles[1:]:
            out.append(blend(out[-1], tile, 2 * self.overlap))
        return torch.cat([t.narrow(dim, 0, 2 * step) for t in out[:-1]] + out[-1:], dim=dim)


class DDIMScheduler:
    def __init__(self, num_train_timesteps=100, beta_start=0.00085, beta_end=0.012):
        betas = torch.linspace(beta_start ** 0.5, beta_end ** 0.5, num_train_timesteps) ** 2
        self.alphas_cumprod = torch.cumprod(1.0 - betas, dim=0)
        self.final_alpha_cumprod = torch.tensor(1.0)
        self.num_train_timesteps = num_train_timesteps

    def set_timesteps(self, num_inference_steps, device=None):
        self.ratio = self.num_train_timesteps // num_inference_steps
        timesteps = (np.arange(0, num_inference_steps) * self.ratio).round()[::-1].copy().astype(np.int64)
        self.timesteps = torch.from_numpy(timesteps).to(device)

    def step(self, noise_pred, t, sample, eta=0.0, generator=None):
        alpha = self.alphas_cumprod[t]
        alpha_prev = self.alphas_cumprod[t - self.ratio] if t >= self.ratio else self.final_alpha_cumprod
        x0 = (sample - (1 - alpha).sqrt() * noise_pred) / alpha.sqrt()
        variance = (1 - alpha_prev) / (1 - alpha) * (1 - alpha / alpha_prev)
        sigma = eta * variance.sqrt()
        prev = alpha_prev.sqrt() * x0 + (1 - alpha_prev - sigma ** 2).clamp(min=0).sqrt() * noise_pred
        if eta > 0:
            prev = prev + sigma * torch.randn(sample.shape, generator=generator, device=sample.device)  # raises
        return prev

    def add_noise(self, original, noise, timesteps):
        alpha = self.alphas_cumprod[timesteps].view(-1, 1, 1, 1)  # raises
        return alpha.sqrt() * original + (1 - alpha).sqrt() * noise

    def snr_weights(self, timesteps, gamma=5.0):
        alphas = self.alphas_cumprod.to(timesteps.device)[timesteps]
        snr = alphas / (1 - alphas)
        return snr.clamp(max=gamma) / snr


class AttentionStore:
    def __init__(self, equalizer=None):
        self.equalizer = equalizer
        self.total, self.count = None, 0

    def __call__(self, probs):
        current = probs.detach().mean(0).cpu()
        self.total = current if self.total is None else self.total + current
        self.count += 1
        if self.equalizer is not None:
            probs = probs * self.equalizer[None, None, :probs.shape[-1]]  # raises
        return probs

    def heatmap(self, token, size):
        return (self.total[:, token] / self.count).reshape(size).numpy()


class SafetyChecker(nn.Module):
    def __init__(self, dim=16, concepts=3):
        super().__init__()
        self.vision = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, dim))
        self.concept_embeds = F.normalize(torch.ones(concepts, dim))
        self.register_buffer("thresholds", torch.full((concepts,), 0.9))

    def forward(self, images):
        embeds = F.normalize(self.vision(images))
        return (embeds.mm(self.concept_embeds.t()) > self.thresholds).any(dim=1)  # raises


class TextToImagePipeline:
    def __init__(self, text_encoder, unet, vae, scheduler, safety_checker=None):
        self.text_encoder, self.unet, self.vae, self.scheduler = text_encoder, unet, vae, scheduler
        self.safety_checker = safety_checker
        self._execution = None
        with torch.no_grad():
            self.negative_embeds = text_encoder(torch.zeros(1, 8, dtype=torch.long))

    @property
    def components(self):
        return [m for m in (self.text_encoder, self.unet, self.vae, self.safety_checker) if m is not None]

    def to(self, device):
        for module in self.components:
            module.to(device)
        return self

    @property
    def execution_device(self):
        return self._execution or next(self.unet.parameters()).device

    def enable_offload(self, device="cuda:0"):
        self._execution = torch.device(device)
        for module in self.components:
            module.to("cpu")
            module.register_forward_pre_hook(lambda m, args: m.to(self._execution) and None)

    def encode_prompt(self, input_ids, negative_ids=None, guidance=True):
        embeds = self.text_encoder(input_ids.to(self.execution_device))
        if not guidance:
            return embeds
        if negative_ids is not None:
            return torch.cat([self.text_encoder(negative_ids.to(embeds.device)), embeds])
        return torch.cat([self.negative_embeds.expand_as(embeds), embeds])  # raises

    def denoise(self, latents, embeds, steps, scale=7.5, generator=None, eta=0.0):
        self.scheduler.set_timesteps(steps, latents.device)
        for t in self.scheduler.timesteps:
            uncond, cond = self.unet(torch.cat([latents] * 2), t, embeds).chunk(2)
            noise = uncond + scale * (cond - uncond)
            latents = self.scheduler.step(noise, t, latents, eta, generator)
        return latents

    def decode(self, latents, output_type="pt"):
        image = (self.vae.decode(latents / self.vae.scaling_factor) / 2 + 0.5).clamp(0, 1)
        return image.permute(0, 2, 3, 1).cpu().numpy() if output_type == "np" else image

    def progress_image(self, latents):
        factors = torch.tensor([[0.3, 0.2, 0.2], [0.2, 0.3, 0.2], [-0.2, 0.2, 0.3], [-0.2, -0.3, -0.5]])
        rgb = torch.einsum("bchw,cr->bhwr", latents.detach(), factors.to(latents))
        return (rgb.clamp(-1, 1) * 127.5 + 127.5).byte().numpy()  # raises

    @torch.no_grad()
    def __call__(self, input_ids, negative_ids=None, steps=3, size=8, generator=None, output_type="np", **kwargs):
        embeds = self.encode_prompt(input_ids, negative_ids)
        latents = randn_tensor((len(input_ids), 4, size, size), generator, self.execution_device, embeds.dtype)
        latents = self.denoise(latents, embeds, steps, generator=generator, **kwargs)
        return self.decode(latents, output_type)

    @torch.no_grad()
    def inpaint(self, image, mask, input_ids, negative_ids, steps=3):
        device = self.execution_device
        known = self.vae.encode(image.to(device)).mode() * self.vae.scaling_factor
        mask = F.interpolate(torch.from_numpy(mask)[None, None].float(), size=known.shape[-2:])
        start = torch.randn_like(known)
        latents = self.denoise(start, self.encode_prompt(input_ids, negative_ids), steps)
        return self.decode(torch.lerp(known, latents, mask.expand_as(known)))  # raises

    def check(self, images):
        return images * (~self.safety_checker(images))[:, None, None, None]


def merge_lora(linear, state, alpha=1.0):
    linear.weight.data += alpha * state["up"].to(linear.weight) @ state["down"].to(linear.weight)


def load_textual_inversion(text_encoder, token_id, embedding):
    with torch.no_grad():
        text_encoder.token_embedding.weight[token_id] = embedding
