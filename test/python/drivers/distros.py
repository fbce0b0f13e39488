import torch

import distros as d


def t(*shape):
    return torch.randn(*shape).to("cuda:0")


CALLS = dict(
    vonmises=lambda: d.VonMises1D(t(3), t(3).exp()).log_prob(t(3)),
    vonmises_sample=lambda: d.VonMises1D(t(3), t(3).exp()).sample((2,)),
    truncated=lambda: d.TruncatedNormal(t(3), t(3).exp(), -2.0, 2.0).rsample((4,)),
    mog=lambda: d.MixtureOfGaussians(2, 3).to("cuda:0").log_prob(t(4, 3)),
    mog_sample=lambda: d.MixtureOfGaussians(2, 3).to("cuda:0").sample(4),
    realnvp=lambda: d.RealNVP(4).to("cuda:0")(t(3, 4)),
    realnvp_logp=lambda: d.RealNVP(4).to("cuda:0").log_prob(t(3, 4)),
    actnorm=lambda: d.ActNorm(4).to("cuda:0")(t(3, 4)),
    gumbel=lambda: d.gumbel_softmax(t(3, 4), hard=True),
    gumbel_topk=lambda: d.gumbel_topk(t(3, 4), 2),
    langevin=lambda: d.langevin(lambda x: x.pow(2).sum(-1), t(3, 2)),
    metropolis=lambda: d.metropolis(lambda x: -x.pow(2).sum(-1), t(3, 2)),
    lhs=lambda: d.latin_hypercube(-t(2).abs(), t(2).abs(), 5),
    systematic=lambda: d.systematic_resample(t(5).softmax(0)),
    stratified=lambda: d.stratified_resample(t(5).softmax(0)),
    kl=lambda: d.kl_std_normal(t(3, 2), t(3, 2)),
    kl_closed=lambda: d.kl_closed(t(3, 2), t(3, 2)),
)
