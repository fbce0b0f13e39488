class Registry(dict):
    def __call__(self, name):
        def add(cls):
            self[name] = cls
            return cls
        return add

    def make(self, spec, *args, **kwargs):
        spec = dict(spec)
        return self[spec.pop("name")](*args, **spec, **kwargs)


MODELS, LOSSES = Registry(), Registry()
