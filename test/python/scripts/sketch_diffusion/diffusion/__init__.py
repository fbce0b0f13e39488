from .schedule import NoiseSchedule
from .unet import TinyUNet
from .ema import EMA
