from .averaging import WeightAverage
from .misc import GradientNorm, PlateauLR, WeightNoise

CALLBACKS = {'average': WeightAverage, 'gradnorm': GradientNorm, 'plateau': PlateauLR, 'noise': WeightNoise}
