import torch

from members import Member, Standardizer
from pool import Pool
from settings import Settings, devices_of


class Ensemble:
    def __init__(self, settings):
        self.devices = devices_of(settings.members)
        self.members = [Member(settings, d, seed) for seed, d in enumerate(self.devices)]
        self.main_device = self.devices[0]
        self.scale = Standardizer()

    def fit(self, pool, settings):
        self.scale.fit(pool.x[pool.labelled])
        losses = []
        for x, y in pool.loader(settings.batch_size):
            x = self.scale(x)
            losses.append(torch.stack([m.train_on(x, y).to(self.main_device) for m in self.members]))
        return torch.stack(losses).mean(0)

    @torch.no_grad()
    def predict(self, x):
        means, variances = [], []
        for member in self.members:
            mean, logvar = member.net(self.scale(x.to(member.device)))
            means.append(mean.to(self.main_device))
            variances.append(logvar.exp().to(self.main_device))
        means, variances = torch.stack(means), torch.stack(variances)
        return means.mean(0), variances.mean(0), means.var(0, unbiased=False)


def calibration(mean, total_var, y, levels=(0.5, 0.9)):
    normal = torch.distributions.Normal(torch.tensor(0.0), torch.tensor(1.0))
    z = ((y.to(mean.device) - mean) / total_var.sqrt()).abs()
    return {q: (z < normal.icdf(torch.tensor(0.5 + q / 2))).float().mean().item() for q in levels}


def main():
    settings = Settings()
    pool = Pool(16, settings.features, 8)
    ensemble = Ensemble(settings)
    for number in range(settings.rounds):
        losses = ensemble.fit(pool, settings)
        _, aleatoric, epistemic = ensemble.predict(pool.x[pool.open_rows()])
        score = (epistemic / (aleatoric + epistemic)).squeeze(1)
        weights = losses.new_ones(len(losses)).div(len(losses))
        print(number, (losses * weights).sum().item(), pool.acquire(score, settings.acquire))
    mean, aleatoric, epistemic = ensemble.predict(pool.x)
    print(calibration(mean, aleatoric + epistemic, pool.y))
    for member in ensemble.members:
        member.swag.sample_into(member.net)
    drawn = ensemble.predict(pool.x)[0]
    print("shift", (drawn - mean).abs().mean().item(), "rmse", (drawn.cpu() - pool.y).pow(2).mean().sqrt().item())


if __name__ == "__main__":
    main()
