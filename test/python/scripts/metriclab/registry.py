class Registry:
    """Name -> class, filled by decorators."""

    def __init__(self, what):
        self.what = what
        self._entries = {}

    def register(self, name=None):
        def wrap(cls):
            key = name or cls.__name__.lower()
            if key in self._entries:
                raise KeyError(f'{self.what} {key} registered twice')
            self._entries[key] = cls
            return cls
        return wrap

    def build(self, name, *args, **kwargs):
        return self._entries[name](*args, **kwargs)

    def names(self):
        return sorted(self._entries)


LOSSES = Registry('loss')
MINERS = Registry('miner')
