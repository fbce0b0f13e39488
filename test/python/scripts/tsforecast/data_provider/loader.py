import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from utils.scalers import build_scaler


class SineDataset(Dataset):
    """Sums of noisy sines, split 70/10/20."""

    def __init__(self, args, flag='train', length=160):
        self.seq_len, self.label_len, self.pred_len = args.seq_len, args.label_len, args.pred_len
        rng = np.random.RandomState(7)
        t = np.arange(length)[:, None]
        freq = rng.uniform(0.05, 0.4, size=(1, args.features))
        raw = (3.0 + np.sin(t * freq) * 2 + rng.randn(length, args.features) * 0.1).astype(np.float32)
        n_train, n_test = int(length * 0.6), int(length * 0.2)
        borders = {'train': (0, n_train),
                   'val': (n_train - self.seq_len, length - n_test),
                   'test': (length - n_test - self.seq_len, length),
                   'pred': (length - self.seq_len - self.pred_len, length)}
        self.scaler = build_scaler(args.scaler)
        self.scaler.fit(raw[:n_train])
        lo, hi = borders[flag]
        self.data = self.scaler.transform(torch.from_numpy(raw))[lo:hi]
        hours = np.stack([t[:, 0] % 24, (t[:, 0] // 24) % 7], axis=1)
        self.stamp = torch.from_numpy(hours)[lo:hi]

    def __len__(self):
        return len(self.data) - self.seq_len - self.pred_len + 1

    def __getitem__(self, index):
        s_end = index + self.seq_len
        r_begin, r_end = s_end - self.label_len, s_end + self.pred_len
        return (self.data[index:s_end], self.data[r_begin:r_end],
                self.stamp[index:s_end], self.stamp[r_begin:r_end])

    def inverse_transform(self, data):
        return self.scaler.inverse_transform(data)


def data_provider(args, flag):
    dataset = SineDataset(args, flag)
    shuffle = flag == 'train'
    loader = DataLoader(dataset, batch_size=1 if flag == 'pred' else args.batch_size, shuffle=shuffle,
                        drop_last=shuffle, num_workers=0)
    return dataset, loader
