"""Distributions draw where their parameters are, and take values there."""

import dt
import torch


@dt.models("torch.distributions.Distribution", "torch.distributions.*.Distribution")
class Distribution:
    tensors: list[torch.Tensor]  # also of one that a caller passes

    def sample(self, *shapes, sample_shape=None, **options):
        return dt.unknown() if len(self.tensors) == 0 else drawn(self.tensors, shapes, sample_shape)

    def rsample(self, *shapes, sample_shape=None):
        return self.sample(*shapes, sample_shape=sample_shape)

    def log_prob(self, value):
        dt.together(*self.tensors)
        return value if len(self.tensors) == 0 else value - self.tensors[0]

    def cdf(self, value):
        return self.log_prob(value)

    def icdf(self, value):
        return self.log_prob(value)

    def entropy(self):
        return dt.unknown() if len(self.tensors) == 0 else self.tensors[0]

    @property
    def mean(self):
        return self.entropy()

    @property
    def mode(self):
        return self.entropy()

    @property
    def stddev(self):
        return self.entropy()

    @property
    def variance(self):
        return self.entropy()

    def __getattr__(self, name):
        return dt.unknown()


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
class Parametrised(Distribution):
    tensors: list[torch.Tensor]

    def __init__(self, *parameters, **named):
        given = [*parameters, *named.values()]
        self.isOfNumbers = given and "logits" not in named
        self.inner = [each for each in given if isinstance(each, Distribution)]
        of_inner = [tensor for each in self.inner for tensor in each.tensors]
        self.tensors = of_inner if self.inner else [each for each in given if torch.is_tensor(each)]

    def sample(self, *shapes, sample_shape=None, **options):
        if self.isOfNumbers:
            return drawn(self.tensors, shapes, sample_shape)
        return super().sample(*shapes, sample_shape=sample_shape)


@dt.models(
    "torch.distributions.Beta",
    "torch.distributions.Uniform",
    "torch.distributions.*.Beta",
    "torch.distributions.*.Uniform",
)
class Bounded(Parametrised):
    """Its parameters meet where it is made."""

    def __init__(self, *parameters, **named):
        super().__init__(*parameters, **named)
        dt.together(*self.tensors)


def drawn(tensors, shapes, named):
    """`shapes`: empty, or the one that is given by its place."""
    given = [*shapes, *([] if named is None else [named])]
    if len(tensors) == 0:
        return torch.empty(given[0] if given else ())
    dt.together(*tensors)
    return tensors[0].unsqueeze(0).expand(*given[0], *tensors[0].shape) if given else torch.empty_like(tensors[0])


@dt.models("torch.distributions.kl_divergence", "torch.distributions.kl.kl_divergence")
def kl_divergence(p, q):
    for ours, theirs in zip(p.tensors, q.tensors):
        ours - theirs
    return p.entropy()
