"""Distributions draw where their parameters are, and take values there."""

import dt
import torch


@dt.models(
    "torch.distributions.Bernoulli",
    "torch.distributions.Binomial",
    "torch.distributions.Categorical",
    "torch.distributions.Cauchy",
    "torch.distributions.Chi2",
    "torch.distributions.ContinuousBernoulli",
    "torch.distributions.Dirichlet",
    "torch.distributions.Exponential",
    "torch.distributions.Gamma",
    "torch.distributions.Geometric",
    "torch.distributions.Gumbel",
    "torch.distributions.HalfCauchy",
    "torch.distributions.HalfNormal",
    "torch.distributions.Independent",
    "torch.distributions.Laplace",
    "torch.distributions.LogNormal",
    "torch.distributions.LowRankMultivariateNormal",
    "torch.distributions.MixtureSameFamily",
    "torch.distributions.Multinomial",
    "torch.distributions.MultivariateNormal",
    "torch.distributions.NegativeBinomial",
    "torch.distributions.Normal",
    "torch.distributions.OneHotCategorical",
    "torch.distributions.Pareto",
    "torch.distributions.Poisson",
    "torch.distributions.RelaxedBernoulli",
    "torch.distributions.RelaxedOneHotCategorical",
    "torch.distributions.StudentT",
    "torch.distributions.VonMises",
    "torch.distributions.Weibull",
    "torch.distributions.*.Bernoulli",
    "torch.distributions.*.Categorical",
    "torch.distributions.*.Independent",
    "torch.distributions.*.MultivariateNormal",
    "torch.distributions.*.Normal",
)
class Distribution:
    def __init__(self, *parameters, **named):
        given = [*parameters, *named.values()]
        self.isKnown = given and "logits" not in named  # which is no number
        self.inner = [each for each in given if isinstance(each, Distribution)]
        of_inner = [tensor for each in self.inner for tensor in each.tensors]
        self.tensors = of_inner if self.inner else [each for each in given if torch.is_tensor(each)]

    def sample(self, *shapes, sample_shape=None, **options):
        return drawn(self.tensors, shapes, sample_shape) if self.tensors or self.isKnown else dt.unknown()

    def rsample(self, *shapes, sample_shape=None):
        return drawn(self.tensors, shapes, sample_shape) if self.tensors or self.isKnown else dt.unknown()

    def log_prob(self, value):
        dt.together(*self.tensors)
        return value - self.tensors[0] if self.tensors else value

    def cdf(self, value):
        return self.log_prob(value)

    def entropy(self):
        return self.tensors[0] if self.tensors else dt.unknown()

    def __getattr__(self, name):
        return dt.unknown()


@dt.models(
    "torch.distributions.Beta",
    "torch.distributions.Uniform",
    "torch.distributions.*.Beta",
    "torch.distributions.*.Uniform",
)
class Bounded(Distribution):
    """Its parameters meet where it is made."""

    def __init__(self, *parameters, **named):
        super().__init__(*parameters, **named)
        dt.together(*self.tensors)


def drawn(tensors, shapes, named):
    """`shapes`: empty, or the one that is given by its place."""
    given = [*shapes, *([] if named is None else [named])]
    if not tensors:
        return torch.empty(given[0] if given else ())
    dt.together(*tensors)
    return tensors[0].unsqueeze(0).expand(*given[0], *tensors[0].shape) if given else torch.empty_like(tensors[0])


@dt.models("torch.distributions.kl_divergence", "torch.distributions.kl.kl_divergence")
def kl_divergence(p, q):
    for ours, theirs in zip(p.tensors, q.tensors):
        ours - theirs
    return p.entropy()
