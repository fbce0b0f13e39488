import torch
from score_models import *  # noqa: F401,F403

D = torch.device("cuda:0")


def schedule(kind="linear"):
    return Schedule(ScheduleConfig(kind=kind)).to(D)


def x(n=5):
    return torch.randn(n, 4, device=D)


def t(n=5):
    return torch.randint(0, 20, (n,), device=D)


def net(learned=True):
    return TinyNet(learned=learned).to(D)


def forward_process():
    s = schedule()
    a, b = x(), t()
    return s.predict_start(s.q_sample(a, b), b, torch.zeros_like(a)), s.min_snr_weight(b), s.posterior(a, a, b)


def importance(batched):
    sampler = ImportanceSampler(20)
    index, weight = sampler.sample(6, D)
    loss = weight * x(6).pow(2).mean(1)
    (sampler.update_batched if batched else sampler.update)(index, loss)
    return sampler.sample(6, D)


def solve(cls, device=None, learned=True, conditions=None):
    return cls(with_noise_level(net(learned), conditions), device=device).integrate(x())


def flow_roundtrip():
    flow = build_flow(4, ("coupling", "lu", "coupling")).to(D)
    return flow.log_prob(flow.sample(4))


def fsq():
    q = FiniteScalar()
    return q.from_index(torch.arange(9, device=D)), q(torch.randn(4, 3, device=D))


def revive(trained):
    q = Quantizer().to(D)
    if trained:
        q(x(2))
    return q.revive(x(8))


CALLS = {
    "forward_process": forward_process,
    "posterior_one_step": lambda: schedule("cosine").posterior(x(), x(), torch.tensor(3, device=D)),
    "vlb": lambda: schedule().vlb_weight(t()),
    "importance": lambda: importance(False),
    "importance_batched": lambda: importance(True),
    "euler": lambda: solve(Euler),
    "heun": lambda: solve(Heun, D),
    "multistep": lambda: solve(Multistep),
    "multistep_device": lambda: solve(Multistep, D),
    "guided": lambda: solve(Euler, None, True, torch.zeros(4)),
    "guided_device": lambda: solve(Heun, None, True, torch.zeros(1, 4, device=D)),
    "fourier": lambda: solve(Euler, D, False),
    "flow": flow_roundtrip,
    "flow_permute": lambda: build_flow(4, ("permute", "lu")).to(D).log_prob(x()),
    "flow_permute_sample": lambda: build_flow(4, ("permute", "coupling")).to(D).sample(3),
    "flow_base": lambda: build_flow(4, ("lu",), standard_base(4, x()[0])).to(D).log_prob(x()),
    "lu_penalty": lambda: build_flow(4).to(D).layers[1].penalty(),
    "vae": lambda: VAE(free_bits=0.1).to(D).elbo(x()),
    "vae_vamp": lambda: VAE(components=3).to(D).elbo(x()),
    "vae_iwae": lambda: VAE().to(D).iwae(x()),
    "vae_generate": lambda: (VAE().to(D).generate(3), VAE().to(D).traverse(x(), 1)),
    "quantize": lambda: (lambda q: (q(x()), q.eval()(x())))(Quantizer().to(D)),
    "revive": lambda: revive(True),
    "revive_untrained": lambda: revive(False),
    "fsq": fsq,
    "fsq_index": lambda: FiniteScalar().to_index(FiniteScalar()(torch.randn(4, 3, device=D))),
}
