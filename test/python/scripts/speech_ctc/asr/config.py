import dataclasses
import json
from dataclasses import dataclass, field
from typing import List


@dataclass
class FeatureConfig:
    frame: int = 32
    hop: int = 16
    mels: int = 8
    kind: str = "mel"
    cmvn: bool = False
    on_gpu: bool = True


@dataclass
class AugmentConfig:
    time_masks: int = 0
    freq_masks: int = 0
    width: int = 2


@dataclass
class Config:
    features: FeatureConfig = field(default_factory=FeatureConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    encoder: str = "conv"
    hidden: int = 12
    alphabet: List[str] = field(default_factory=lambda: list("_abcd"))
    batch_size: int = 4
    steps: int = 2
    decode: str = "none"
    lr: float = 0.01


def _merge(instance, values):
    for key, value in values.items():
        current = getattr(instance, key)
        if dataclasses.is_dataclass(current):
            _merge(current, value)
        else:
            setattr(instance, key, type(current)(value))


def load_config(path=None, overrides=()):
    config = Config()
    if path:
        with open(path) as handle:
            _merge(config, json.load(handle))
    for item in overrides:
        key, value = item.split("=", 1)
        *parents, leaf = key.split(".")
        target = config
        for parent in parents:
            target = getattr(target, parent)
        _merge(target, {leaf: json.loads(value)})
    return config
