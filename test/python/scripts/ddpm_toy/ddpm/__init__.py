from .diffusion import Diffusion
from .ema import EMA
from .nets import ScoreNet
