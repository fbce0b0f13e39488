"""Datasets of torch.utils.data."""

import dt
import torch


@dt.models("torch.utils.data.TensorDataset", "torch.utils.data.dataset.TensorDataset")
class TensorDataset:
    def __init__(self, *tensors):
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple([tensor[index] for tensor in self.tensors])

    def __len__(self):
        return dt.unknown()


@dt.models("torch.utils.data.Subset", "torch.utils.data.dataset.Subset")
class Subset:
    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index):
        return self.dataset[index]

    def __len__(self):
        return dt.unknown()


@dt.models("torch.utils.data.random_split", "torch.utils.data.dataset.random_split")
def random_split(dataset, lengths, generator=None):
    torch.randperm(2, generator=generator)
    return [Subset(dataset, None) for length in lengths]


@dt.models("torch.utils.data.ConcatDataset", "torch.utils.data.dataset.ConcatDataset")
class ConcatDataset:
    def __init__(self, datasets):
        self.datasets = list(datasets)

    def __getitem__(self, index):
        return self.datasets[dt.unknown()][index]

    def __len__(self):
        return dt.unknown()
