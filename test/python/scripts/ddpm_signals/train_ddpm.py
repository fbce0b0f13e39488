from __future__ import annotations

import argparse
import dataclasses
import os
import tempfile

import torch

from diffusion import Denoiser, Diffusion
from diffusion.ema import ModuleEMA, ShadowEMA
from diffusion.unet import Guided


@dataclasses.dataclass
class Options:
    steps: int = 6
    schedule: str = "linear"
    target: str = "eps"
    weighting: str = "none"
    classes: int = 0
    drop_label: float = 0.0
    ema: str = "module"
    resume: bool = False
    sampler: str = "ancestral"
    guidance: float = 0.0
    iterations: int = 3
    device: str = "cuda"

    @classmethod
    def parse(cls):
        parser = argparse.ArgumentParser()
        for field in dataclasses.fields(cls):
            name = "--" + field.name.replace("_", "-")
            if isinstance(field.default, bool):
                parser.add_argument(name, action="store_true")
            else:
                parser.add_argument(name, type=type(field.default), default=field.default)
        return cls(**vars(parser.parse_args()))


def signals(n, classes):
    phase = torch.rand(n, 1) * 6.28
    labels = torch.randint(0, max(classes, 1), (n,))
    time = torch.linspace(0, 6.28, 12)[None] * (labels[:, None] + 1) + phase
    return torch.stack([time.sin(), time.cos()], dim=1), labels


def main(options):
    torch.manual_seed(0)
    model = Denoiser(classes=options.classes, drop_label=options.drop_label)
    process = Diffusion(options.steps, options.schedule, options.target, options.weighting)
    if options.ema == "early":
        ema = ShadowEMA(model)
        model = model.to(options.device)
    else:
        model = model.to(options.device)
        ema = ShadowEMA(model) if options.ema == "shadow" else ModuleEMA(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    with tempfile.TemporaryDirectory() as folder:
        for iteration in range(options.iterations):
            x, labels = signals(4, options.classes)
            loss = process.loss(model, x.to(options.device), labels.to(options.device) if options.classes else None)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            ema.update(model)
            print(iteration, loss.item())
            if options.resume and iteration == 0:
                path = os.path.join(folder, "last.pt")
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
                state = torch.load(path, map_location="cpu")
                model.load_state_dict(state["model"])
                optimizer.load_state_dict(state["optimizer"])

    final = ema.copy_to(model).eval()
    labels = torch.arange(3, device=options.device) % options.classes if options.classes else None
    network = Guided(final, options.guidance) if options.guidance else final
    out = getattr(process, options.sampler)(network, (3, 2, 12), options.device, labels)
    print("sample range", out.min().item(), out.max().item())


if __name__ == "__main__":
    main(Options.parse())
