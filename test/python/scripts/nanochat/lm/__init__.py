from . import adapters, config, data, decode, model, optim  # noqa: F401
