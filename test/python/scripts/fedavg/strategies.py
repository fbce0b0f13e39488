import torch


class FedAvg:
    proximal = 0.0

    def receive(self, weights, device):
        return {k: v.to(device) for k, v in weights.items()}

    def penalty(self, model, anchor):
        return 0.0

    def mix(self, old, updates, share):
        mixed = {}
        for key, value in old.items():
            if not value.is_floating_point():
                mixed[key] = updates[0][key]
                continue
            mixed[key] = sum(w * u[key] for w, u in zip(share, updates))
        return mixed


class FedProx(FedAvg):
    """Clients are kept near the weights that they were given."""

    def __init__(self, mu=0.1):
        self.mu = mu

    def penalty(self, model, anchor):
        away = 0.0
        for name, p in model.named_parameters():
            away = away + ((p - anchor[name]) ** 2).sum()  # raises
        return 0.5 * self.mu * away


class FedMomentum(FedAvg):
    """The server goes on in the direction of the rounds before."""

    def __init__(self, beta=0.6):
        self.beta = beta
        self.velocity = {}

    def mix(self, old, updates, share):
        mean = super().mix(old, updates, share)
        for key, value in old.items():
            if value.is_floating_point():
                v = self.velocity.get(key, torch.zeros_like(value))
                self.velocity[key] = self.beta * v + (mean[key] - value)
                mean[key] = value + self.velocity[key]
        return mean


class FedMedian(FedAvg):
    """Coordinate by coordinate; robust to clients gone astray."""

    def receive(self, weights, device):
        return weights

    def mix(self, old, updates, share):
        return {k: torch.stack([u[k] for u in updates]).median(0).values  # raises
                if v.is_floating_point() else v for k, v in old.items()}


STRATEGIES = {'avg': FedAvg, 'prox': FedProx, 'momentum': FedMomentum, 'median': FedMedian}
