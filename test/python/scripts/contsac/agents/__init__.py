from .normalizer import RunningMeanStd
from .sac import SAC
