import dataclasses
from dataclasses import dataclass, field


@dataclass
class ODEConfig:
    solver: str = 'rk4'
    substeps: int = 2
    tolerance: float = 1e-2
    time_aware: bool = False


@dataclass
class Config:
    latent: int = 6
    hidden: int = 16
    batch: int = 16
    epochs: int = 2
    lr: float = 5e-3
    kl_warmup: int = 6
    device: str = 'cuda'
    forecast: bool = False
    forecast_steps: int = 5
    checkpoint: bool = False
    ode: ODEConfig = field(default_factory=ODEConfig)


def _convert(kind, text):
    if kind is bool:
        return text.lower() in ('1', 'true', 'yes')
    return kind(text)


def with_overrides(config, pairs):
    """Applies pairs such as ode.solver=euler."""
    for pair in pairs:
        name, _, text = pair.partition('=')
        owner = config
        *path, last = name.split('.')
        for part in path:
            owner = getattr(owner, part)
        kinds = {f.name: f.type for f in dataclasses.fields(owner)}
        if last not in kinds:
            raise SystemExit(f'no such setting: {name}')
        setattr(owner, last, _convert(kinds[last], text))
    return config
