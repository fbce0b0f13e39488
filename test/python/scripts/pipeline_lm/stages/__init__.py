from .config import Config
from .model import TwoStageLM

__all__ = ["Config", "TwoStageLM"]
