import torch
import torch.nn as nn
import torch.nn.functional as F


@torch.no_grad()
def extract(model, batches, device):
    model.eval()
    features, labels = zip(*((model.features(x.to(device)).cpu(), y) for x, y in batches))
    return torch.cat(features), torch.cat(labels)


@torch.no_grad()
def knn(model, train, test, k, classes, device, temperature=0.1):
    """Weighted vote of the nearest training points."""
    bank, labels = extract(model, train.plain(), device)
    correct = count = 0
    for x, y in test.plain():
        features = model.features(x.to(device))
        similarity, nearest = (features @ bank.t()).topk(k, dim=1)  # raises
        votes = F.one_hot(labels.to(nearest.device)[nearest], classes) * (similarity / temperature).exp().unsqueeze(-1)
        correct += (votes.sum(dim=1).argmax(dim=1).cpu() == y).sum().item()
        count += len(y)
    return correct / count


def probe(model, train, test, steps, classes, device):
    """Accuracy of a linear classifier on the features."""
    x, y = (each.to(device) for each in extract(model, train.plain(), device))
    head = nn.Linear(x.size(1), classes).to(device)
    optimizer = torch.optim.LBFGS(head.parameters(), max_iter=steps)

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(head(x), y)
        loss.backward()
        return loss

    optimizer.step(closure)
    x, y = extract(model, test.plain(), device)
    return (head.cpu()(x).argmax(1) == y).float().mean().item()
