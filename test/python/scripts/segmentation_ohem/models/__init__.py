from .unet import UNet
from .fcn import FCN

_factory = {"unet": UNet, "fcn": FCN}


def create_model(name, **kwargs):
    try:
        return _factory[name](**kwargs)
    except KeyError:
        raise ValueError("unknown model %r, choose from %s" % (name, sorted(_factory)))
