from .unet import UNet


def create_model(cfg):
    return UNet(3, cfg.classes, cfg.widths)
