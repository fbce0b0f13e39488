from dataclasses import dataclass, fields

import torch


@dataclass
class Episode:
    support: torch.Tensor
    support_y: torch.Tensor
    query: torch.Tensor
    query_y: torch.Tensor
    way: int

    def to(self, device):
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return Episode(**{k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in values.items()})


class EpisodeSampler:
    """Classes are points on a sphere; with a curriculum, noise grows as the loss falls."""

    def __init__(self, way, shot, query, dim=6, classes=12, curriculum=False):
        self.way, self.shot, self.query = way, shot, query
        self.centers = torch.nn.functional.normalize(torch.randn(classes, dim), dim=1)
        self.noise = torch.tensor(0.2)
        self.curriculum = curriculum

    def feedback(self, loss):
        if self.curriculum:
            self.noise = torch.where(loss < 0.5, self.noise * 1.1, self.noise)

    def draw(self):
        chosen = torch.randperm(len(self.centers))[:self.way]
        y = torch.arange(self.way)

        def around(n):
            labels = y.repeat_interleave(n)
            x = self.centers[chosen][labels]
            return x + self.noise * torch.randn_like(x), labels

        return Episode(*around(self.shot), *around(self.query), way=self.way)


def rotations(episode):
    q, _ = torch.linalg.qr(torch.randn(episode.support.size(1), episode.support.size(1)))
    return Episode(episode.support @ q, episode.support_y, episode.query @ q, episode.query_y, episode.way)
