import torch


class Normalizer:
    """Running mean and variance; lives on one device, gives back what it was given."""

    def __init__(self, dim, device):
        self.mean = torch.zeros(dim, device=device)
        self.var = torch.ones(dim, device=device)
        self.count = torch.tensor(1e-4)

    def observe(self, x):
        x = x.to(self.mean.device)
        self.count += 1
        delta = x - self.mean
        self.mean += delta / self.count
        self.var += (delta * (x - self.mean) - self.var) / self.count

    def __call__(self, x):
        return ((x - self.mean) / (self.var + 1e-6).sqrt()).clamp(-5, 5)  # raises


class RewardScaler:
    def __init__(self, gamma=0.99):
        self.gamma = gamma
        self.ret = torch.zeros(())
        self.second = torch.ones(())

    def __call__(self, reward):
        self.ret = self.ret * self.gamma + reward
        self.second = 0.99 * self.second + 0.01 * self.ret ** 2
        return (reward / self.second.sqrt()).numpy().item()
