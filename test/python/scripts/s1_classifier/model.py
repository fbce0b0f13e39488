import torch
import torch.nn as nn


class BasicBlock(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.shortcut = nn.Sequential()
        if stride != 1 or cin != cout:
            self.shortcut = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        out = torch.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return torch.relu(out + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, num_classes=4, width=4, mean=(0.5, 0.5, 0.5)):
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1), persistent=False)
        self.stem = nn.Conv2d(3, width, 3, 1, 1)
        self.layers = nn.Sequential(BasicBlock(width, width), BasicBlock(width, 2 * width, 2))
        self.fc = nn.Linear(2 * width, num_classes)

    def forward(self, x):
        x = self.stem(x - self.mean)
        return self.fc(self.layers(x).mean(dim=(2, 3)))


def build(name, **kwargs):
    models = {"resnet": ResNet}
    return models[name](**kwargs)
