import os
import tempfile

import torch
from torch.utils.data import DataLoader, TensorDataset

from diffusion import EMA, NoiseSchedule, TinyUNet

STEPS = 8


def sketches(n=12):
    g = torch.Generator().manual_seed(7)
    y = torch.randint(4, (n,), generator=g)
    x = torch.full((n, 1, 8, 8), -1.0)
    for i, c in enumerate(y.tolist()):
        x[i, 0, c:c + 4, 2:6] = 1.0
    return TensorDataset(x, y)


class Experiment:
    def __init__(self, folder, device):
        self.device = torch.device(device)
        self.model = TinyUNet().to(self.device)
        self.ema = EMA(self.model)
        self.schedule = NoiseSchedule(STEPS, self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), 2e-3)
        self.path = os.path.join(folder, "state.pt")
        self.step = 0
        if os.path.exists(self.path):
            self.resume()

    def save(self):
        torch.save({"model": self.model.state_dict(), "ema": self.ema.model.state_dict(), "schedule": self.schedule.state_dict(),
                    "optimizer": self.optimizer.state_dict(), "step": self.step}, self.path)

    def resume(self):
        state = torch.load(self.path, map_location="cpu")
        self.model.load_state_dict(state["model"])
        self.ema.model.load_state_dict(state["ema"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.step = state["step"]

    def train_step(self, x, y):
        t = torch.randint(STEPS, (len(x),), device=self.device)
        eps = torch.randn_like(x)
        weight = self.schedule.loss_weight(t)
        pred = self.model(self.schedule.noisy(x, t, eps), t, y, drop=0.1)
        loss = (weight * (pred - eps).pow(2).mean((1, 2, 3))).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.ema.update(self.model)
        self.step += 1
        return loss.item()

    @torch.no_grad()
    def sample(self, n, guidance=2.0):
        x = torch.randn(n, 1, 8, 8, device=self.device)
        y = torch.arange(n, device=self.device) % 4
        for i in reversed(range(STEPS)):
            t = torch.full((n,), i, device=self.device)
            cond, free = self.ema.model(x, t, y), self.ema.model(x, t)
            x = self.schedule.denoise(x, t, free + guidance * (cond - free))
        return x.clamp(-1, 1).cpu().numpy()

    def run(self, epochs):
        for _ in range(epochs):
            for x, y in DataLoader(sketches(), batch_size=4, shuffle=True):
                loss = self.train_step(x.to(self.device), y.to(self.device))
        print(self.step, loss, self.sample(3).std())
        self.save()


def main():
    with tempfile.TemporaryDirectory() as folder:
        Experiment(folder, "cuda").run(1)
        again = Experiment(folder, "cuda")
        print(again.sample(2).shape)
        again.run(1)


if __name__ == "__main__":
    main()
