"""The server: it holds the weights and mixes what clients send."""
import random
from collections import OrderedDict

import torch

from strategies import STRATEGIES


class Server:
    def __init__(self, model, clients, strategy, device, fraction=0.5, seed=0):
        self.model = model.to(device)
        self.device = device
        self.clients = clients
        self.strategy = STRATEGIES[strategy]()
        self.fraction = fraction
        self.rng = random.Random(seed)

    def pick(self):
        return self.rng.sample(self.clients, max(1, int(self.fraction * len(self.clients))))

    def weights(self):
        return OrderedDict((k, v.detach().clone()) for k, v in self.model.state_dict().items())

    def round(self):
        updates, sizes, losses = [], [], []
        for client in self.pick():
            weights, loss = client.work(self.weights(), self.strategy)
            updates.append(self.strategy.receive(weights, self.device))
            sizes.append(client.size)
            losses.append(loss)
        share = torch.tensor(sizes, dtype=torch.float)
        share = share / share.sum()
        mixed = self.strategy.mix(self.weights(), updates, share)
        self.model.load_state_dict(mixed)
        return float(torch.dot(share, torch.tensor(losses)))

    @torch.no_grad()
    def accuracy(self, loader):
        self.model.eval()
        right = sum(int((self.model(x.to(self.device)).argmax(1).cpu() == y).sum()) for x, y in loader)
        return right / len(loader.dataset)
