import os
import random

import torch
from torch.utils.data import DataLoader

from collate import Collator
from modeling import StageLM
from parallel import StageTrainer, balanced_map, dispatch


def corpus(n=8, seed=1):
    rng = random.Random(seed)
    return [[rng.randrange(1, 20) for _ in range(rng.randrange(4, 9))] for _ in range(n)]


def main():
    torch.manual_seed(int(os.environ.get("SEED", "0")))
    gpus = int(os.environ.get("NUM_GPUS", torch.cuda.device_count()))
    model = StageLM()
    device_map = balanced_map(model, gpus)
    model = dispatch(model, device_map)
    print(device_map)
    loader = DataLoader(corpus(), batch_size=4, collate_fn=Collator())
    trainer = StageTrainer(model, torch.optim.AdamW(model.parameters(), lr=1e-3), device=f"cuda:{device_map['embed']}")
    print(trainer.train(loader))
    with torch.no_grad():
        logits = model(torch.tensor([[3, 4, 5]]))["logits"]
        print(logits[:, -1].argmax(-1).tolist())


if __name__ == "__main__":
    main()
