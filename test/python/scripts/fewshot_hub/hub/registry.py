import torch
import torch.nn as nn

_MODELS = {}


def register(name):
    def wrap(factory):
        _MODELS[name] = factory
        return factory

    return wrap


def create(name, **options):
    if name not in _MODELS:
        raise KeyError(f"no model {name!r}; there are {', '.join(available())}")
    return _MODELS[name](**options)


def available():
    return sorted(_MODELS)


@register("mlp")
class MLP(nn.Module):
    def __init__(self, inputs=6, features=5):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, 12), nn.ReLU(), nn.Linear(12, features))

    def forward(self, x):
        return self.net(x)


@register("experts")
class Experts(nn.Module):
    """A softly gated mixture; a prior says how much each expert is trusted."""

    def __init__(self, inputs=6, features=5, experts=3):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(inputs, features) for _ in range(experts))
        self.gate = nn.Linear(inputs, experts)
        self.register_buffer("prior", torch.zeros(experts))

    def set_prior(self, trust):
        self.prior = torch.as_tensor(trust).log()

    def forward(self, x):
        weights = (self.gate(x) + self.prior).softmax(-1)  # raises
        return sum(weights[:, i : i + 1] * expert(x) for i, expert in enumerate(self.experts))


@register("fourier")
class Fourier(nn.Module):
    def __init__(self, inputs=6, features=5, seed=1):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        projection = torch.randn(inputs, 8, generator=generator)
        self.projection = nn.Parameter(projection, requires_grad=False)
        self.out = nn.Linear(16, features)

    def forward(self, x):
        angles = x @ self.projection
        return self.out(torch.cat([angles.sin(), angles.cos()], dim=-1))
