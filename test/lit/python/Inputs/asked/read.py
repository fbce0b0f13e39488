import torch


class Regions:
    def __init__(self, device):
        self.device = device

    def __call__(self, img):
        seg = torch.from_numpy(find(img.numpy()))
        return img.view(-1) + seg.view(-1).float()

    def other(self, img):
        return img + torch.zeros(3)


def find(x):
    return x
