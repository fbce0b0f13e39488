from torch import nn


class Encoder(nn.Module):
    def __init__(self, dim, width=8):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, stride=2, padding=1)
        self.head = nn.Sequential(nn.ReLU(), nn.Conv2d(width, dim, 3, stride=2, padding=1))

    def forward(self, x):
        shallow = self.stem(x)
        return self.head(shallow), shallow


class Decoder(nn.Module):
    def __init__(self, dim, width=8):
        super().__init__()
        self.grow = nn.Sequential(nn.ConvTranspose2d(dim, width, 4, stride=2, padding=1), nn.ReLU())
        self.final = nn.ConvTranspose2d(width, 1, 4, stride=2, padding=1)

    def forward(self, z, shortcut=None):
        h = self.grow(z)
        if shortcut is not None:
            h = h + shortcut  # raises
        return self.final(h)
