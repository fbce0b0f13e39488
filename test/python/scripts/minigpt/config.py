"""Configuration of the language model and of its training."""
import argparse
from dataclasses import dataclass, field, fields
from typing import Tuple


@dataclass
class ModelConfig:
    vocab_size: int = 32
    block_size: int = 24
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 16
    dropout: float = 0.0
    pos: str = "learned"

    @property
    def head_dim(self):
        return self.n_embd // self.n_head


@dataclass
class TrainConfig:
    steps: int = 4
    batch_size: int = 4
    lr: float = 3e-3
    betas: Tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.1
    grad_clip: float = 1.0
    ema_decay: float = 0.0
    restart_at: int = 0
    generate: int = 0
    penalty: float = 1.0
    top_k: int = 0
    eval_by_frequency: bool = False
    seed: int = 7
    model: ModelConfig = field(default_factory=ModelConfig)


def parse_args(argv=None) -> TrainConfig:
    parser = argparse.ArgumentParser("minigpt")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--pos", choices=["learned", "rotary", "none"], default="learned")
    parser.add_argument("--ema-decay", type=float, default=0.0)
    parser.add_argument("--restart-at", type=int, default=0, help="save, rebuild everything and resume at this step")
    parser.add_argument("--generate", type=int, default=0, help="number of tokens to sample after training")
    parser.add_argument("--penalty", type=float, default=1.0, help="repetition penalty")
    parser.add_argument("--top-k", type=int, default=0)
    parser.add_argument("--eval-by-frequency", action="store_true")
    parser.add_argument("--seed", type=int, default=7)
    args = vars(parser.parse_args(argv))
    model_keys = {f.name for f in fields(ModelConfig)}
    model = ModelConfig(**{k: v for k, v in args.items() if k in model_keys})
    return TrainConfig(model=model, **{k: v for k, v in args.items() if k not in model_keys})
