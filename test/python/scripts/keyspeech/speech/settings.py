import argparse
from typing import List, NamedTuple

import torch


class Settings(NamedTuple):
    features: str = 'fbank'
    encoder: str = 'conv'
    specaug: str = 'off'
    cmvn: str = 'utterance'
    mel_bins: int = 10
    n_fft: int = 64
    hop: int = 32
    hidden: int = 16
    tokens: int = 6
    epochs: int = 1
    batch_size: int = 4
    lr: float = 1e-3
    seed: int = 17
    decode: str = 'greedy'
    lengths: str = 'host'
    callbacks: List[str] = []
    device: str = 'auto'
    out: str = 'history.json'

    @classmethod
    def parse(cls, argv):
        parser = argparse.ArgumentParser()
        for name, kind in cls.__annotations__.items():
            default = cls._field_defaults[name]
            if name == 'callbacks':
                parser.add_argument('--callbacks', nargs='+', default=default)
            else:
                parser.add_argument('--' + name.replace('_', '-'), type=kind, default=default)
        settings = cls(**vars(parser.parse_args(argv)))
        if settings.device == 'auto':
            settings = settings._replace(device='cuda' if torch.cuda.is_available() else 'cpu')
        return settings
