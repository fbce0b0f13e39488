import torch
from torch.utils.data import DataLoader, TensorDataset


def get_loader(opt):
    g = torch.Generator()
    g.manual_seed(opt.manualSeed)
    images = torch.rand(8, 1, 8, 8, generator=g) * 2 - 1
    labels = torch.randint(0, 3, (8,), generator=g)
    return DataLoader(TensorDataset(images, labels), batch_size=opt.batchSize, shuffle=True)
