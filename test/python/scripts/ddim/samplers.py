import torch

SAMPLERS = {}


def sampler(fn):
    SAMPLERS[fn.__name__] = fn
    return fn


def strided(steps, count):
    return list(range(0, steps, max(1, steps // count)))[::-1]


@sampler
@torch.no_grad()
def ddim(model, schedule, shape, count, seed, y=None):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=gen).to(schedule.device)
    taus = strided(schedule.steps, count)
    for now, nxt in zip(taus, taus[1:] + [-1]):
        t = x.new_full((shape[0],), now, dtype=torch.long)
        eps = model(x, t, y)
        a, b = schedule.alpha_bar(now), schedule.alpha_bar(nxt)
        x0 = (x - (1 - a).sqrt() * eps) / a.sqrt()
        x = b.sqrt() * x0.clamp(-1, 1) + (1 - b).sqrt() * eps
    return x


@sampler
@torch.no_grad()
def ancestral(model, schedule, shape, count, seed, y=None):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=gen).to(schedule.device)
    taus = strided(schedule.steps, count)
    for now, nxt in zip(taus, taus[1:] + [-1]):
        t = torch.full((shape[0],), now, device=x.device)
        eps = model(x, t, y)
        a, b = schedule.alpha_bar(now), schedule.alpha_bar(nxt)
        sigma = ((1 - b) / (1 - a) * (1 - a / b)).clamp_min(0).sqrt()
        mean = b.sqrt() * (x - (1 - a).sqrt() * eps) / a.sqrt()
        noise = torch.randn(x.shape, generator=gen, device=x.device) if nxt >= 0 else 0  # raises
        x = mean + sigma * noise
    return x
