import tempfile

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

from audiotag.callbacks import Checkpoint, EarlyStop
from audiotag.features import LogSpectrogram, Mixer, synth
from audiotag.nets import Tagger

CLASSES = 3


class Sounds(Dataset):
    def __init__(self, n, seed):
        rng = np.random.RandomState(seed)
        self.labels = rng.randint(0, CLASSES, n)
        self.waves = [synth(l, rng=rng) for l in self.labels]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return torch.from_numpy(self.waves[i]), torch.tensor(self.labels[i])


class Trainer:
    def __init__(self, model, teacher, device, callbacks):
        self.model, self.teacher, self.device, self.callbacks = model.to(device), teacher.to(device).eval(), device, callbacks
        self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=1e-3)
        self.mixer, self.stop = Mixer(), False
        self.soft = {}

    def soft_targets(self, key, wave):
        if key not in self.soft:
            with torch.no_grad():
                self.soft[key] = self.teacher(wave).sigmoid().half().cpu()
        return self.soft[key].to(wave.device).float()

    def epoch(self, loader):
        self.model.train()
        for i, (wave, label) in enumerate(loader):
            target = torch.zeros(len(label), CLASSES).scatter_(1, label[:, None], 1.0)
            wave, target = wave.to(self.device), target.to(self.device)
            soft = self.soft_targets(i, wave)
            mixed, mixed_target = self.mixer(wave, target)
            loss = F.binary_cross_entropy_with_logits(self.model(mixed), mixed_target, pos_weight=torch.tensor(1.5))
            loss = loss + 0.5 * F.binary_cross_entropy_with_logits(self.model(wave), soft)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    @torch.no_grad()
    def validate(self, loader):
        self.model.eval()
        probs, labels = [], []
        for wave, label in loader:
            probs.append(self.model(wave.to(self.device)).sigmoid())
            labels += label.tolist()
        probs = torch.cat(probs)
        picked = probs[torch.arange(len(labels)), labels]
        order = probs.argsort(1, descending=True).cpu().numpy()
        print("top1", float((order[:, 0] == np.array(labels)).mean()))
        return picked.mean()

    def fit(self, train, val, epochs):
        for _ in range(epochs):
            self.epoch(train)
            metric = self.validate(val)
            for cb in self.callbacks:
                cb.on_epoch_end(self, metric)
            if self.stop:
                break


def main():
    torch.manual_seed(0)
    device = torch.device("cuda", torch.cuda.device_count() - 1)
    train, val = Sounds(12, 0), Sounds(6, 1)
    front = LogSpectrogram().fit(torch.stack([train[i][0] for i in range(len(train))]))
    freq = np.bincount(train.labels, minlength=CLASSES)
    sampler = WeightedRandomSampler(1.0 / np.maximum(freq, 1)[train.labels], len(train))
    with tempfile.TemporaryDirectory() as folder:
        ckpt = Checkpoint(folder)
        trainer = Trainer(Tagger(front, 17, CLASSES, 6), Tagger(LogSpectrogram(), 17, CLASSES, 8), device, [ckpt, EarlyStop(3)])
        trainer.fit(DataLoader(train, 4, sampler=sampler), DataLoader(val, 3), 2)
        state = torch.load(ckpt.path, map_location="cpu")
        trainer.optimizer.load_state_dict(state["optimizer"])
        trainer.fit(DataLoader(train, 4), DataLoader(val, 3), 1)
    fresh = Tagger(LogSpectrogram(), 17, CLASSES, 6)
    fresh.load_state_dict(state["model"])
    with torch.no_grad():
        print(fresh.eval()(val[0][0][None]).sigmoid().numpy().round(2), state["best"])


if __name__ == "__main__":
    main()
