import torch
from torch.utils.data import DataLoader, Dataset, random_split


class Blobs(Dataset):
    def __init__(self, n=16, classes=4, transform=None):
        g = torch.Generator().manual_seed(0)
        self.images = torch.rand(n, 3, 8, 8, generator=g)
        self.labels = torch.randint(0, classes, (n,), generator=g)
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        img = self.images[i]
        if self.transform is not None:
            img = self.transform(img)
        return img, self.labels[i]


class RandomErase:
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, img):
        if torch.rand(1).item() < self.p:
            mask = torch.ones_like(img)
            mask[:, 2:4, 2:4] = 0
            img = img * mask
        return img


def loaders(args):
    full = Blobs(transform=RandomErase())
    train, val = random_split(full, [12, 4], generator=torch.Generator().manual_seed(args.seed))
    kw = dict(batch_size=args.batch_size, pin_memory=args.device.startswith("cuda"))
    return DataLoader(train, shuffle=True, **kw), DataLoader(val, **kw)
