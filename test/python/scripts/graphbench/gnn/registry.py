from collections import defaultdict

_REGISTRY = defaultdict(dict)


def register(kind, name):
    def decorate(obj):
        assert name not in _REGISTRY[kind], name
        _REGISTRY[kind][name] = obj
        return obj
    return decorate


def create(kind, name, *args, **kwargs):
    return _REGISTRY[kind][name](*args, **kwargs)


def names(kind):
    return sorted(_REGISTRY[kind])
