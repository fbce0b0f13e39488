"""A weighted neighbours' vote over the features of the training set."""
import torch
import torch.nn.functional as F


class FeatureBank:
    def __init__(self, device):
        self.device = device
        self.features, self.labels = [], []

    def add(self, features, labels):
        self.features.append(F.normalize(features, dim=1).cpu())
        self.labels.append(labels)

    def frozen(self):
        return torch.cat(self.features).to(self.device), torch.cat(self.labels)


def vote(bank, queries, classes, k=5, temperature=0.1, chunk=10):
    features, labels = bank.frozen()
    guesses = []
    for part in F.normalize(queries, dim=1).split(chunk):
        similarity, index = (part @ features.t()).topk(k, dim=1)
        votes = torch.gather(labels.expand(len(part), -1), 1, index)  # raises
        onehot = F.one_hot(votes, classes).to(similarity)
        guesses.append((onehot * (similarity / temperature).exp()[..., None]).sum(1).argmax(1))
    return torch.cat(guesses)


def nearest_centroid(bank, queries, classes):
    features, labels = bank.frozen()
    means = torch.stack([features[labels == c].mean(0) for c in range(classes)])
    return (F.normalize(queries, dim=1) @ F.normalize(means, dim=1).t()).argmax(1)


@torch.no_grad()
def accuracy(net, loader, device, how="knn", classes=3):
    net.eval()
    bank = FeatureBank(device)
    queries, truth = [], []
    for x, y, _ in loader:
        features = net.features(x.to(device))
        bank.add(features, y)
        queries.append(features)
        truth.append(y)
    rule = vote if how == "knn" else nearest_centroid
    guess = rule(bank, torch.cat(queries), classes)
    net.train()
    return (guess.cpu() == torch.cat(truth)).float().mean().item()
