import torch


class Identity:
    def fit(self, data):
        return self

    def transform(self, data):
        return data

    inverse_transform = transform


class StandardScaler:
    def __init__(self):
        self.mean = 0.
        self.std = 1.

    def fit(self, data):
        self.mean = data.mean(0)
        self.std = data.std(0)
        return self

    def transform(self, data):
        mean = torch.from_numpy(self.mean).type_as(data).to(data.device) if torch.is_tensor(data) else self.mean
        std = torch.from_numpy(self.std).type_as(data).to(data.device) if torch.is_tensor(data) else self.std
        return (data - mean) / std

    def inverse_transform(self, data):
        mean = torch.from_numpy(self.mean).type_as(data) if torch.is_tensor(data) else self.mean
        std = torch.from_numpy(self.std).type_as(data) if torch.is_tensor(data) else self.std
        return (data * std) + mean


class MinMaxScaler:
    def __init__(self, eps=1e-6):
        self.eps = eps

    def fit(self, data):
        data = torch.as_tensor(data)
        self.low = data.min(dim=0).values
        self.span = data.max(dim=0).values - self.low + self.eps
        return self

    def transform(self, data):
        return (data - self.low) / self.span

    def inverse_transform(self, data):
        restored = data * self.span  # raises
        return restored + self.low


_SCALERS = {'standard': StandardScaler, 'minmax': MinMaxScaler, 'none': Identity}


def build_scaler(name):
    return _SCALERS[name]()
