import torch
from policy_kit import *  # noqa: F401,F403

D = torch.device("cuda:0")


def x(*shape):
    return torch.rand(*shape, device=D)


def acts(n=4, c=3):
    return torch.randint(c, (n,), device=D)


def gaussian():
    return SquashedGaussian(2).proba_distribution(x(4, 4))


def noise(deterministic, tidy=False):
    d = StateDependentNoise(2, 5)
    if tidy:
        d.log_std = d.log_std.to(D)
        d.resample(4)
    return d.proba_distribution(x(4, 2), x(4, 5)).actions(deterministic)


def storage(device):
    s = RolloutStorage(3, 2, 4, device)
    for _ in range(4):
        s.insert(obs=x(2, 4), actions=acts(2), rewards=x(2), dones=torch.zeros(2, device=D))
    return s


def normalizer(kind, n=4):
    m = ObservationNormalizer((n,), kind=kind).to(D)
    m.observe(x(6, n))
    return m(x(3, n))


def replay(device, to=None):
    r = PrioritizedReplay(8)
    r.add(Batch(x(5, 4), acts(5), x(5), x(5)))
    batch, weights, index = r.sample(3, device)
    td = batch.rewards - batch.dones
    r.update(index, td.cpu())
    return r.weighted_loss(td, weights if to is None else weights.to(to))


def polyak():
    a, b = Encoder(4).to(D), Encoder(4).to(D)
    Polyak(a, b).step()


def categorical_critic():
    c = CategoricalCritic(4).to(D)
    return c.project(x(4), x(4), x(4, 5)), c.two_hot(x(4)), c.expected(x(4, 4))


def masked():
    d = MaskedCategorical(3).proba_distribution(x(4, 3), [True, False, True])
    return d.log_prob(d.actions()), d.mode(), d.entropy()


CALLS = {
    "masked": masked,
    "relabel": lambda: MaskedCategorical(3).relabel(acts(), [3, 4, 5]),
    "relabel_cuda": lambda: MaskedCategorical(3).relabel(acts(), torch.arange(3, device=D)),
    "gaussian": lambda: (gaussian().log_prob(gaussian().actions()), gaussian().entropy()),
    "gaussian_env": lambda: gaussian().to_environment(gaussian().actions(True)),
    "gaussian_unscale": lambda: gaussian().unscale(gaussian().actions()),
    "gsde_mode": lambda: noise(True),
    "gsde_sample": lambda: noise(False),
    "gsde_moved": lambda: noise(False, True),
    "discounted": lambda: discounted(x(5, 2), x(5, 2)),
    "gae": lambda: gae(x(5, 2), x(5, 2), x(5, 2), x(2)),
    "vtrace": lambda: vtrace(x(5, 2), x(5, 2), x(5, 2), x(5, 2), x(2)),
    "nstep": lambda: NStep(3).targets(x(2, 6)),
    "nstep_bootstrap": lambda: NStep(3).bootstrap(x(2, 6)),
    "normalizer": lambda: normalizer("buffers"),
    "normalizer_stats": lambda: normalizer("stats"),
    "reward_scaler": lambda: [(lambda s: [s(x(3)) for _ in range(2)])(RewardScaler(3))],
    "storage": lambda: [b.to(D) for b in storage("cpu").batches(4)],
    "storage_whiten": lambda: storage("cpu").whiten(x(3, 2)),
    "storage_cuda": lambda: (list(storage(D).batches(4)), storage(D).whiten(x(3, 2))),
    "replay": lambda: replay(None, D),
    "replay_loss": lambda: replay(D),
    "quantile": lambda: QuantileCritic(4).to(D).loss(x(4, 4), acts(), x(4, 4)),
    "quantile_best": lambda: QuantileCritic(4).to(D).best(x(4, 4)),
    "categorical": categorical_critic,
    "recurrent": lambda: RecurrentPolicy(4).to(D).unroll(x(3, 2, 4), x(3, 2)),
    "recurrent_state": lambda: (lambda p: p.unroll(x(3, 2, 4), x(3, 2), p.initial(2)))(RecurrentPolicy(4).to(D)),
    "epsilon": lambda: epsilon_greedy(x(4, 3), 0.1),
    "polyak": polyak,
    "nested": lambda: to_tensors(as_numpy({"a": [x(2), x(2)], "b": x(3)}), x(1))["b"] + x(3),
}
