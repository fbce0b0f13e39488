import copy

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader


class Client:
    def __init__(self, name, model, dataset, device, epochs=1, lr=0.05):
        self.name = name
        self.device = torch.device(device)
        self.model = copy.deepcopy(model).to(self.device)
        self.loader = DataLoader(dataset, batch_size=16, shuffle=True)
        self.epochs, self.lr = epochs, lr
        self.class_weight = self._balance(dataset)

    @property
    def size(self):
        return len(self.loader.dataset)

    def _balance(self, dataset):
        labels = torch.stack([y for _, y in dataset])
        count = torch.bincount(labels, minlength=4).float().clamp(min=1)
        return (count.mean() / count).clamp(max=3).to(self.device)

    def work(self, weights, strategy):
        self.model.load_state_dict(weights)
        self.model.train()
        optimizer = torch.optim.SGD(self.model.parameters(), lr=self.lr, momentum=0.9)
        seen = []
        for _ in range(self.epochs):
            for x, y in self.loader:
                x, y = x.to(self.device), y.to(self.device)
                loss = F.cross_entropy(self.model(x), y, weight=self.class_weight)
                loss = loss + strategy.penalty(self.model, weights)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                seen.append(loss.item())
        return self.model.state_dict(), sum(seen) / len(seen)
