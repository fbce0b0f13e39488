import argparse
import os
import tempfile

import torch
from torch.utils.data import DataLoader, TensorDataset

from diffusion import GaussianDiffusion
from ema import EMA
from model import Denoiser


class Trainer:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.device = torch.device(args.device)
        self.diffusion = GaussianDiffusion(Denoiser(), args.size, args.timesteps).to(self.device)
        self.ema = EMA(self.diffusion)
        self.opt = torch.optim.Adam(self.diffusion.parameters(), lr=args.lr)
        images = torch.rand(8, 1, args.size, args.size) * 2 - 1
        self.loader = DataLoader(TensorDataset(images), args.batch_size, shuffle=True, pin_memory=False)
        self.step = 0
        self.history = []

    def train(self, steps):
        data = iter(self.loader)
        while self.step < steps:
            try:
                (x,) = next(data)
            except StopIteration:
                data = iter(self.loader)
                continue
            loss = self.diffusion(x.to(self.device, non_blocking=True))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.diffusion.parameters(), 1.0)
            self.opt.step()
            self.opt.zero_grad(set_to_none=True)
            self.ema.update()
            self.history.append(loss.detach())
            self.step += 1
        print(f"step {self.step}: {torch.stack(self.history).mean().item():.3f}")

    def save(self):
        path = os.path.join(self.folder, "last.pt")
        torch.save({"model": self.diffusion.state_dict(), "ema": self.ema.state_dict(), "opt": self.opt.state_dict(), "step": self.step}, path)
        return path

    def load(self, path):
        state = torch.load(path, map_location="cpu")
        self.diffusion.load_state_dict(state["model"])
        self.ema.load_state_dict(state["ema"])
        self.opt.load_state_dict(state["opt"])
        self.step = state["step"]

    def sample_grid(self, n):
        images = (self.ema.shadow.sample(n) + 1) * 0.5
        rows = torch.cat([torch.cat(list(r), -1) for r in images.split(2)], -2)
        return (rows[0].clamp(0, 1) * 255).byte().cpu().numpy()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--size", type=int, default=4)
    p.add_argument("--timesteps", type=int, default=5)
    p.add_argument("--batch-size", type=int, default=4)
    p.add_argument("--steps", type=int, default=3)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(args, folder)
        trainer.train(args.steps)
        path = trainer.save()
        resumed = Trainer(args, folder)
        resumed.load(path)
        resumed.train(args.steps + 2)
        print(resumed.sample_grid(4).shape)


if __name__ == "__main__":
    main()
