from . import losses, model
from .registry import LOSSES, MODELS

__version__ = "0.3.1"
