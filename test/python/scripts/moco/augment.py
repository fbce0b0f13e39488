import torch
from torch.utils.data import DataLoader, Dataset


class TwoCrops:
    def __init__(self, size):
        self.size = size

    def crop(self, image):
        top, left = torch.randint(0, image.size(-1) - self.size + 1, (2,)).tolist()
        out = image[:, top:top + self.size, left:left + self.size]
        if torch.rand(1) < 0.5:
            out = out.flip(-1)
        return out + 0.05 * torch.randn_like(out)

    def __call__(self, image):
        return self.crop(image), self.crop(image)


class Patches(Dataset):
    def __init__(self, n, transform):
        self.images, self.transform = torch.rand(n, 3, 6, 6), transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        q, k = self.transform(self.images[i])
        return q, k, i


def loader(opt):
    return DataLoader(Patches(8, TwoCrops(4)), batch_size=opt.batch_size, shuffle=True, drop_last=True)
