import torch
from torch.utils.data import Dataset


class RandomTrainDataset(Dataset):
    def __init__(self, size):
        self.size = size
        self.data = [(torch.rand(5), torch.tensor(i % 2)) for i in range(size)]

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return self.data[index]
