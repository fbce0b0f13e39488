from .samplers import DDIM, DDPM


def build_sampler(name, *args, **kwargs):
    return {'ddim': DDIM, 'ddpm': DDPM}[name](*args, **kwargs)
