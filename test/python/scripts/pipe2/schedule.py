"""Order of the micro-batches, and what each step of it does."""
from dataclasses import dataclass
from typing import List

import torch


@dataclass(frozen=True)
class Work:
    stage: int
    micro: int


def gpipe(stages: int, micros: int) -> List[List[Work]]:
    """Clock ticks; in each tick every stage that has something to do."""
    ticks = []
    for clock in range(stages + micros - 1):
        ticks.append([Work(s, clock - s) for s in range(stages) if 0 <= clock - s < micros])
    return ticks


def split(batch, micros):
    return [tuple(part) for part in zip(*(t.chunk(micros) for t in batch))]


def run_ticks(pipeline, micro_inputs, keep=()):
    """Runs the inputs through all stages; outputs by micro-batch, with what the stages in `keep` gave on the way."""
    state = dict(enumerate(micro_inputs))
    kept = {}
    for tick in gpipe(len(pipeline.stages), len(micro_inputs)):
        for work in reversed(tick):
            skip = kept.get((work.stage - 2, work.micro)) if work.stage in pipeline.skips else None
            state[work.micro] = pipeline.run_stage(work.stage, state[work.micro], skip)
            if work.stage in keep:
                kept[work.stage, work.micro] = state[work.micro]
    return [state[i] for i in range(len(micro_inputs))]


def concatenate(outputs, to=None):
    return torch.cat([o.to(to) if to is not None else o for o in outputs])
