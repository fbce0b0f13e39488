import torch
from torch import distributions as D
from torch.distributions import Categorical, Independent, Normal, kl_divergence


class Policy(torch.nn.Module):
    def __init__(self, learned=True):
        super().__init__()
        self.mean = torch.nn.Linear(3, 2)
        spread = torch.zeros(2)
        self.spread = torch.nn.Parameter(spread) if learned else spread

    def forward(self, x):
        return Normal(self.mean(x), self.spread.exp())


def case_drawn_where_the_parameters_are():
    x = torch.zeros(4, 3, device="cuda:0")
    return Policy().cuda()(x).rsample() + torch.ones(4, 2, device="cuda:0")


def case_spread_left_behind():
    pi = Policy(learned=False).cuda()(torch.zeros(4, 3, device="cuda:0"))
    return pi.rsample()  # raises


def case_spread_left_behind_and_asked_for_nothing():
    pi = Policy(learned=False).cuda()(torch.zeros(4, 3, device="cuda:0"))
    return pi.loc.mean()


def case_drawn_of_numbers():
    noise = Normal(0.0, 1.0).sample((4, 2))
    return noise + torch.ones(4, 2, device="cuda:0")  # raises


def case_one_number_drawn():
    return Normal(0.0, 1.0).sample() * torch.ones(4, 2, device="cuda:0")


def case_value_elsewhere():
    pi = Categorical(logits=torch.zeros(4, 3, device="cuda:1"))
    action = pi.sample().cpu()
    return pi.log_prob(action)  # raises


def case_value_there():
    pi = Categorical(logits=torch.zeros(4, 3, device="cuda:1"))
    return pi.log_prob(pi.sample()) + pi.entropy()


def case_prior_of_numbers():
    return kl_divergence(Normal(torch.zeros(2, device="cuda:0"), 1.0), Normal(0.0, 1.0))


def case_prior_on_the_cpu():
    posterior = Normal(torch.zeros(2, device="cuda:0"), torch.ones(2, device="cuda:0"))
    return kl_divergence(posterior, Normal(torch.zeros(1), torch.ones(1)))  # raises


def case_bounds_apart():
    low = torch.zeros(2, device="cuda:0")
    return D.Uniform(low, torch.ones(2))  # raises


def case_independent():
    pi = Independent(Normal(torch.zeros(2, device="cuda:0"), torch.ones(2, device="cuda:0")), 1)
    return pi.log_prob(torch.zeros(5, 2))  # raises


def case_more_of_them():
    draws = D.Gamma(torch.ones(2, device="cuda:2"), 1.0).sample((7,))
    return torch.zeros(7, 2).to(draws) + draws
