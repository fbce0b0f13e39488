from .placement import balanced_map, dispatch
from .engine import StageTrainer
