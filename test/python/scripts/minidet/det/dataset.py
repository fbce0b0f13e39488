import torch
from torch.utils.data import Dataset


class Rectangles(Dataset):
    def __init__(self, length, seed, size=32):
        self.length, self.seed, self.size = length, seed, size

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        g = torch.Generator()
        g.manual_seed(self.seed * 1000 + i)
        n = int(torch.randint(1, 4, (1,), generator=g))
        image = torch.rand(3, self.size, self.size, generator=g) * 0.1
        boxes, labels = [], []
        for _ in range(n):
            x, y = torch.randint(0, self.size - 12, (2,), generator=g).tolist()
            w, h = torch.randint(6, 12, (2,), generator=g).tolist()
            c = int(torch.randint(0, 3, (1,), generator=g))
            image[c, y:y + h, x:x + w] = 1.0
            boxes.append([x, y, x + w, y + h])
            labels.append(c)
        return image, {"boxes": torch.tensor(boxes).float(), "labels": torch.tensor(labels), "id": i}


def collate(samples):
    images, targets = zip(*samples)
    return torch.stack(images), list(targets)
