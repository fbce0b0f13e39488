"""Layers that are taken from a model of torchvision move with the module that they were put into."""
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        layers = models.vgg16(pretrained=True).features
        self.early = nn.Sequential()
        for i in range(4):
            self.early.add_module(str(i), layers[i])
        self.late = layers[4:9]

    def forward(self, x):
        return self.late(self.early(x))


def train():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    features = Features().to(device)
    head = nn.Sequential(*list(models.resnet18().children())[:-1]).to(device)
    pictures = datasets.ImageFolder("pictures", transforms.ToTensor())
    for x, _ in DataLoader(pictures, batch_size=4):
        wanted = features(x.to(device))
        seen = head(x.to(device))
        print(nn.functional.mse_loss(features(x), wanted), seen)


train()
