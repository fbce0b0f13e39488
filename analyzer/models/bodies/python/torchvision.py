"""torchvision and timm."""

import dt
import torch


class Layers(torch.nn.Module):
    """Some layers of a model. A part of them is some layers, too."""

    def __init__(self):
        super().__init__()
        dt.own(self)

    def forward(self, x):
        return dt.run(self, x)

    def __getitem__(self, index):
        return self

    def __iter__(self):
        return iter([self])


@dt.models("torchvision.models.get_model", "torchvision.models.*", "timm.create_model", "timm.models.create_model")
class Model(torch.nn.Module):
    """A model of the library: its layers are one thing, whichever are asked for."""

    def __init__(self, *values, **options):
        super().__init__()
        dt.own(self)
        self.features = self.classifier = self.layer1 = self.layer4 = self.fc = self.head = Layers()

    def forward(self, x):
        return dt.run(self, x)

    def forward_features(self, x):
        return dt.run(self, x)


@dt.models("torchvision.models.detection.*", "torchvision.models.segmentation.*", "torchvision.models.*_Weights*")
def not_modelled(*values, **options):
    return dt.unknown()


@dt.models("torchvision.models.feature_extraction.create_feature_extractor")
def create_feature_extractor(model, *values, **options):
    return model


class Transform:
    def __init__(self, *parts, **options):
        pass

    def __call__(self, image, *others):
        return image if isinstance(image, torch.Tensor) else dt.unknown()


@dt.models("torchvision.datasets.*MNIST", "torchvision.datasets.CIFAR10*")
class Labelled:
    """Pictures with the number of their class."""

    def __init__(self, root=None, train=True, transform=None, target_transform=None, **options):
        self.transform = transform

    def __getitem__(self, index):
        return (dt.unknown() if self.transform is None else torch.zeros(3, 8, 8), 0)

    def __len__(self):
        return dt.unknown()


@dt.models("torchvision.datasets.ImageFolder", "torchvision.datasets.DatasetFolder")
class Pictures(Labelled):
    """Those that lie in a folder: all are for training."""

    def __init__(self, root=None, transform=None, target_transform=None, **options):
        self.transform = transform
