from torch import nn
from torch.nn.utils import spectral_norm


class Critic(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.layers = nn.Sequential(
            spectral_norm(nn.Conv2d(1, width, 4, stride=2, padding=1)), nn.LeakyReLU(0.2),
            spectral_norm(nn.Conv2d(width, 1, 4, stride=2, padding=1)))

    def forward(self, x):
        return self.layers(x).mean(dim=(1, 2, 3))
