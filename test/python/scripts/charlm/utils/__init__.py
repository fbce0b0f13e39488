from .ema import Shadow
from .schedule import cosine_lr
