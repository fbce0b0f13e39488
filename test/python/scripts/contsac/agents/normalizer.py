import torch


class RunningMeanStd:
    def __init__(self, shape, clip=5.0):
        self.mean = torch.zeros(shape)
        self.var = torch.ones(shape)
        self.count = 1e-4
        self.clip = clip

    def update(self, batch):
        batch = batch.detach().cpu()
        n = batch.shape[0]
        delta = batch.mean(0) - self.mean
        total = self.count + n
        self.mean = self.mean + delta * n / total
        self.var = (self.var * self.count + batch.var(0, unbiased=False) * n + delta ** 2 * self.count * n / total) / total
        self.count = total

    def __call__(self, obs):
        return ((obs - self.mean) / (self.var + 1e-8).sqrt()).clamp(-self.clip, self.clip)  # raises
