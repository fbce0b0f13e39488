class Registry:
    def __init__(self, what):
        self.what = what
        self._known = {}

    def register(self, name):
        def add(thing):
            if name in self._known:
                raise KeyError(f'{self.what} {name} is there already')
            self._known[name] = thing
            return thing
        return add

    def build(self, settings, **more):
        settings = dict(settings)
        return self._known[settings.pop('type')](**settings, **more)


ENCODERS = Registry('encoder')
SAMPLERS = Registry('sampler')
STAGES = Registry('stage')
