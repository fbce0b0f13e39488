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


# clean
def case_normal_of_tensors():
    scale = torch.ones(3).cuda()
    noise = torch.normal(0.0, scale) + torch.normal(scale, 1.0) + torch.normal(mean=scale, std=scale)
    return (scale + noise + torch.normal(0.0, 1.0, size=(3,), device="cuda")).sum().item()


# broken
def case_normal_of_numbers():
    scale = torch.ones(3).cuda()
    return scale + torch.normal(0.0, 1.0, size=(3,))  # raises


# broken
def case_normal_of_tensors_on_the_host():
    scale = torch.ones(3).cuda()
    return scale + torch.normal(0.0, torch.ones(3))  # raises


def _device_of(device="auto"):
    if device == "auto":
        device = "cuda"
    device = torch.device(device)
    if device.type == torch.device("cuda").type and not torch.cuda.is_available():
        return torch.device("cpu")
    return device


class _Replay:
    def __init__(self, device="auto"):
        self.device = _device_of(device)

    def sample(self):
        return torch.tensor([1.0, 2.0], device=self.device)


def _q_values(on_gpu):
    device = torch.device("cuda" if torch.cuda.is_available() and on_gpu else "cpu")
    net = torch.nn.Linear(2, 2).to(device)
    return net(_Replay(device).sample()).sum().item()


# clean
def case_replay_on_the_device_of_the_net():
    return _q_values(True) + _q_values(False)


# broken
def case_replay_on_a_device_of_its_own():
    net = torch.nn.Linear(2, 2)
    return net(_Replay().sample())  # raises
