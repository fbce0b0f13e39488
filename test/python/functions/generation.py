"""Sampling, generation and noise."""
import random
from contextlib import contextmanager

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical, Gumbel, Normal

where = torch.device("cuda", 0)


# --- latents


class Posterior:
    noise = staticmethod(lambda like: torch.randn(like.shape))

    def __init__(self, parameters):
        self.mean, self.log_var = parameters.chunk(2, dim=1)

    @property
    def std(self):
        return torch.exp(0.5 * self.log_var)

    def sample(self):
        return self.mean + self.std * self.noise(self.mean)  # raises

    def mode(self):
        return self.mean


class LikePosterior(Posterior):
    noise = staticmethod(torch.randn_like)


def encode(cls):
    return cls(nn.Conv2d(3, 8, 1).to(where)(torch.randn(2, 3, 4, 4, device=where)))


def case_posterior_sample():
    return encode(Posterior).sample()


def case_posterior_mode():
    return encode(Posterior).mode()


def case_posterior_sample_like():
    return encode(LikePosterior).sample()


class Flow(nn.Module):
    def __init__(self, dim, prior):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.prior = prior

    def log_prob(self, x):
        z = x * self.log_scale.exp()
        return self.prior.log_prob(z).sum(1) + self.log_scale.sum()  # raises


def case_flow_with_vector_prior():
    flow = Flow(3, Normal(torch.zeros(3), torch.ones(3))).to(where)
    return flow.log_prob(torch.randn(4, 3, device=where))


def case_flow_with_scalar_prior():
    flow = Flow(3, Normal(0.0, 1.0)).to(where)
    return flow.log_prob(torch.randn(4, 3, device=where))


# --- generators


def seeded(seed, device="cpu"):
    return torch.Generator(device=device).manual_seed(seed)


def initial_latents(shape, generator, device, move=False):
    if isinstance(generator, list):
        rows = [torch.randn(shape[1:], generator=g) for g in generator]
        return torch.stack(rows).to(device)
    if move:
        return torch.randn(shape, generator=generator).to(device)
    return torch.randn(shape, generator=generator, device=device)  # raises


def case_latents_by_list():
    return initial_latents((2, 3), [seeded(0), seeded(1)], where)


def case_latents_on_gpu():
    return initial_latents((2, 3), seeded(0), where)


def case_latents_moved():
    return initial_latents((2, 3), seeded(0), where, move=True)


def case_latents_by_gpu_generator():
    return initial_latents((2, 3), seeded(0, where), where)


@contextmanager
def fixed_seed(seed):
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    yield
    torch.set_rng_state(state)


def case_fixed_seed():
    with fixed_seed(3):
        return torch.randn(2).to(where) + torch.randn(2, device=where)


# --- next token


class Decoder(nn.Module):
    def __init__(self, vocab=7, dim=4):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.cell = nn.GRUCell(dim, dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, token, state=None):
        state = self.cell(self.embed(token), state)  # raises
        return self.out(state), state


def gumbel_choice(logits, temperature):
    noise = Gumbel(0.0, 1.0).sample(logits.shape)
    return torch.argmax(logits / temperature + noise, dim=-1)  # raises


def nucleus(logits, p):
    order = logits.argsort(dim=-1, descending=True)
    mass = logits.gather(-1, order).softmax(-1).cumsum(-1)
    late = (mass - mass[:, :1]) > p
    drop = torch.empty(logits.shape, dtype=torch.bool)
    drop.scatter_(-1, order, late)  # raises
    return logits.masked_fill(drop, float("-inf"))


CHOICES = {
    "greedy": lambda logits: logits.argmax(-1),
    "categorical": lambda logits: Categorical(logits=logits).sample(),
    "gumbel": lambda logits: gumbel_choice(logits, 0.7),
    "nucleus": lambda logits: Categorical(logits=nucleus(logits, 0.8)).sample(),
    "host": lambda logits: torch.multinomial(logits.softmax(-1).cpu(), 1).squeeze(1),
    "host_and_back": lambda logits: torch.multinomial(logits.softmax(-1).cpu(), 1).squeeze(1).to(logits.device),
}


class Stops:
    def __init__(self, ids):
        self.ids = torch.tensor(ids)

    def reached(self, token):
        return torch.isin(token, self.ids)  # raises


def generate(choice, steps=3, batch=2, banned=(), stops=None):
    decoder = Decoder().to(where)
    token, state, rows = torch.zeros(batch, dtype=torch.long, device=where), None, []
    for _ in range(steps):
        logits, state = decoder(token, state)
        logits[:, torch.tensor(banned, dtype=torch.long)] = float("-inf")
        token = CHOICES[choice](logits)
        rows.append(token)
        if stops is not None and stops.reached(token).all():
            break
    return torch.stack(rows, dim=1)


def case_greedy_with_banned():
    return generate("greedy", banned=(1, 2))


def case_categorical():
    return generate("categorical")


def case_gumbel():
    return generate("gumbel")


def case_nucleus():
    return generate("nucleus")


def case_choice_on_host():
    return generate("host")


def case_choice_on_host_and_back():
    return generate("host_and_back")


def case_stop_tokens():
    return generate("greedy", stops=Stops([5, 6]))


def with_start(tokens, start=1):
    first = torch.full((tokens.size(0), 1), start, dtype=tokens.dtype)
    return torch.cat((first, tokens[:, :-1]), dim=1)  # raises


def case_shifted_targets():
    return with_start(generate("greedy"))


def case_shifted_targets_on_host():
    return with_start(generate("greedy").cpu()).to(where)


def case_scheduled_sampling():
    tokens, decoder, state = generate("greedy"), Decoder().to(where), None
    token = tokens[:, 0]
    for t in range(1, tokens.size(1)):
        logits, state = decoder(token, state)
        token = logits.argmax(1) if torch.rand(1) < 0.5 or random.random() < 0.1 else tokens[:, t]
    return token


# --- beams


class Beams:
    def __init__(self, batch, width):
        self.width = width
        self.scores = torch.tensor([0.0] + [-1e9] * (width - 1)).repeat(batch, 1)
        self.offset = torch.arange(batch)[:, None] * width

    def to(self, device):
        self.scores = self.scores.to(device)
        return self

    def advance(self, log_probs):
        batch, vocab = len(self.scores), log_probs.size(-1)
        totals = self.scores[..., None] + log_probs.view(batch, self.width, vocab)  # raises
        self.scores, best = totals.view(batch, -1).topk(self.width)
        parents = torch.div(best, vocab, rounding_mode="floor").cpu() + self.offset
        return parents.view(-1), best % vocab


def beam_search(beams, batch=2, steps=2):
    decoder = Decoder().to(where)
    token, state = torch.zeros(batch * beams.width, dtype=torch.long, device=where), None
    for _ in range(steps):
        logits, state = decoder(token, state)
        parents, token = beams.advance(logits.log_softmax(-1))
        token, state = token.view(-1), state[parents]
    return beams.scores[:, 0]


def case_beams():
    return beam_search(Beams(2, 3))


def case_beams_moved():
    return beam_search(Beams(2, 3).to(where))


# --- noise of controllers and of Langevin dynamics


class OrnsteinUhlenbeck:
    def __init__(self, dim, theta=0.15, sigma=0.2, seed=0):
        self.theta, self.sigma = theta, sigma
        self.rng = np.random.default_rng(seed)
        self.state = np.zeros(dim, dtype=np.float32)

    def __call__(self):
        drift = -self.theta * self.state
        self.state = (self.state + drift + self.sigma * self.rng.normal(size=self.state.shape)).astype(np.float32)
        return torch.from_numpy(self.state)


def explore(actor, obs, noise, on_host):
    action = actor(obs.to(where))
    if on_host:
        action = action.cpu()
    return (action + noise()).clamp(-1, 1)  # raises


def case_exploration():
    return explore(nn.Linear(4, 2).to(where), torch.randn(4), OrnsteinUhlenbeck(2), on_host=False)


def case_exploration_on_host():
    return explore(nn.Linear(4, 2).to(where), torch.randn(4), OrnsteinUhlenbeck(2), on_host=True).detach().numpy()


def case_annealed_langevin():
    x = torch.randn(3, 2, device=where)
    for sigma in torch.logspace(0, -1, 3):
        x = x - 0.5 * sigma ** 2 * x + sigma * torch.randn_like(x)
    return x
