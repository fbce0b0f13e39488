import torch
import torch.nn as nn


def weights_init(m):
    name = m.__class__.__name__
    if "Conv" in name:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif "BatchNorm" in name:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


class Generator(nn.Module):
    def __init__(self, nz=6, ngf=4, classes=3):
        super().__init__()
        self.nz = nz
        self.label_emb = nn.Embedding(classes, nz)
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, z, labels):
        z = z * self.label_emb(labels)[:, :, None, None]
        return self.main(z)

    @torch.no_grad()
    def sample(self, n, label=0):
        z = torch.randn(n, self.nz, 1, 1)
        labels = torch.full((n,), label, dtype=torch.long, device=self.label_emb.weight.device)
        return self(z.to(labels.device), labels)

    @torch.no_grad()
    def interpolate(self, a, b, steps=4, label=0):
        w = torch.linspace(0, 1, steps).view(-1, 1, 1, 1)
        z = a * (1 - w) + b * w  # raises
        return self(z, torch.full((steps,), label, dtype=torch.long, device=z.device))


class Discriminator(nn.Module):
    def __init__(self, ndf=4, classes=3):
        super().__init__()
        self.embed = nn.Embedding(classes, 8 * 8)
        self.main = nn.Sequential(nn.Conv2d(2, ndf, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(ndf, 1, 4, 1, 0), nn.Sigmoid())

    def forward(self, x, labels):
        plane = self.embed(labels).view(-1, 1, 8, 8)
        return self.main(torch.cat([x, plane], 1)).view(-1)
