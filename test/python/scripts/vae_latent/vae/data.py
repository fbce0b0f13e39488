import numpy as np
import torch


def bars(count, side, rng):
    """Images of horizontal or vertical bars, and which of them they are."""
    images = np.zeros((count, side, side), dtype=np.float32)
    labels = rng.integers(0, 2, count)
    for image, label in zip(images, labels):
        where = rng.choice(side, size=2, replace=False)
        if label:
            image[:, where] = 1
        else:
            image[where] = 1
    return images.reshape(count, -1), labels


class Bars:
    def __init__(self, count=128, side=6, batch_size=16, seed=0):
        images, labels = bars(count, side, np.random.default_rng(seed))
        self.images, self.labels = torch.from_numpy(images), torch.from_numpy(labels)
        self.batch_size = batch_size

    @property
    def pixels(self):
        return self.images.size(1)

    def __len__(self):
        return len(self.images)

    def batches(self, device, shuffle=True):
        order = torch.randperm(len(self)) if shuffle else torch.arange(len(self))
        for index in order.split(self.batch_size):
            x, y = self.images[index], self.labels[index]
            if device.type == "cuda":
                x, y = x.pin_memory(), y.pin_memory()
            yield x.to(device, non_blocking=True), y.to(device, non_blocking=True)
