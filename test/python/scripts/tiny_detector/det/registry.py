class Registry(dict):
    def register(self, cls):
        self[cls.__name__] = cls
        return cls

    def build(self, cfg, *args, **kw):
        cfg = dict(cfg)
        return self[cfg.pop("type")](*args, **cfg, **kw)


MODELS, OPTIMIZERS = Registry(), Registry()
