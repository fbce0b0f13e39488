import torch
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    """Squares of class 1 and discs of class 2 on noise; the border is ignored."""

    def __init__(self, length, size, ignore_index, seed=0):
        self.length, self.size, self.ignore_index = length, size, ignore_index
        self.generator = torch.Generator().manual_seed(seed)

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        s = self.size
        image = torch.rand(3, s, s, generator=self.generator)
        mask = torch.zeros(s, s, dtype=torch.long)
        mask[1:s // 2, 1:s // 2] = 1
        yy, xx = torch.meshgrid(torch.arange(s), torch.arange(s), indexing="ij")
        mask[(yy - s * 0.7) ** 2 + (xx - s * 0.7) ** 2 < 4] = 2
        image += mask.float() * 0.5
        mask[0, :] = self.ignore_index
        return {"image": image, "mask": mask, "name": f"shape_{index:03d}"}


def make_loaders(cfg):
    train = Shapes(8, cfg.image_size, cfg.ignore_index)
    val = Shapes(4, cfg.image_size, cfg.ignore_index, seed=1)
    return DataLoader(train, cfg.batch_size, shuffle=True), DataLoader(val, cfg.batch_size)
