import argparse
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class ModelConfig:
    vocab_size: int
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 16
    block_size: int = 48
    positions: str = "learned"


@dataclass
class RunConfig:
    device: str = ""
    seed: int = 1337
    steps: int = 2
    batch_size: int = 4
    context: int = 12
    eval_iters: int = 2
    lr: float = 1e-2
    positions: str = "learned"
    lora: str = "off"
    lora_rank: int = 2
    merge: bool = False
    summary: bool = False
    decode: str = "greedy"
    prompt: str = "to be"
    new_tokens: int = 5
    temperature: float = 0.9
    top_k: int = 8
    penalty: float = 1.0
    beams: int = 3
    sample_seed: int = -1

    def model_config(self, vocab_size: int) -> ModelConfig:
        return ModelConfig(vocab_size=vocab_size, positions=self.positions)


def parse(argv=None) -> RunConfig:
    parser = argparse.ArgumentParser()
    for f in fields(RunConfig):
        flag = "--" + f.name.replace("_", "-")
        if f.type is bool:
            parser.add_argument(flag, action="store_true", default=f.default)
        else:
            parser.add_argument(flag, type=f.type, default=f.default)
    return RunConfig(**vars(parser.parse_args(argv)))
