"""Class-conditional diffusion on 8x8 pictures."""
import argparse
import copy

import torch

from data import loader, render
from sampler import SAMPLERS, sample
from schedule import SCHEDULES
from unet import UNet


class Averaged:
    def __init__(self, model, decay=0.9):
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for mine, theirs in zip(self.model.state_dict().values(), model.state_dict().values()):
            if mine.dtype.is_floating_point:
                mine.lerp_(theirs, 1 - self.decay)
            else:
                mine.copy_(theirs)


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--schedule", choices=sorted(SCHEDULES), default="linear")
    p.add_argument("--steps", type=int, default=8, help="of the diffusion")
    p.add_argument("--epochs", type=int, default=1)
    p.add_argument("--min-snr", type=float, default=0.0)
    p.add_argument("--sampler", choices=sorted(SAMPLERS), default="ddpm")
    p.add_argument("--guidance", type=float, default=0.0)
    p.add_argument("--samples", type=int, default=4)
    p.add_argument("--render", choices=["no", "last", "progress"], default="last")
    return p.parse_args()


def training_loss(model, schedule, x, labels):
    t = torch.randint(schedule.steps, (x.size(0),), device=x.device)
    noise = torch.randn_like(x)
    error = (model(schedule.noised(x, t, noise), t, labels) - noise).pow(2).flatten(1).mean(1)
    return (schedule.weights(t) * error).mean()


def main():
    args = options()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    schedule = SCHEDULES[args.schedule](args.steps)
    if args.min_snr:
        schedule.weigh_by_snr(args.min_snr)
    schedule.to(device)
    model = UNet().to(device)
    averaged = Averaged(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    labels = torch.arange(args.samples, device=device) % model.classes
    generator = torch.Generator().manual_seed(1)

    for epoch in range(args.epochs):
        model.train()
        total = torch.tensor(0.0)
        for x, y in loader():
            loss = training_loss(model, schedule, x.to(device), y.to(device))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            averaged.update(model)
            total = total + loss.detach()
        print(f"epoch {epoch} loss {total.item():.4f}")
        if args.render == "progress":
            print(render(sample(averaged.model, schedule, labels, 8, args.sampler, args.guidance, generator)))
    images = sample(averaged.model, schedule, labels, 8, args.sampler, args.guidance, generator)
    if args.render != "no":
        print(render(images.cpu()))


if __name__ == "__main__":
    main()
