import torch
from torch import nn

import seqtrain as S

D = torch.device("cuda:0")
R = lambda *s: torch.randn(*s, device=D)
I = lambda *s: torch.randint(1, 6, s, device=D)
LENS = lambda: torch.tensor([3, 1], device=D)
lm = lambda: nn.Sequential(nn.Embedding(6, 4), nn.Linear(4, 6)).to(D)
critic = lambda: S.ValueHead(nn.Embedding(6, 4), 4).to(D)


def _ppo():
    return S.PPOTrainer(critic(), critic())


def _ppo_step():
    t = _ppo()
    for _ in range(2):
        out = t.step(I(2, 3), [torch.tensor(0.5, device=D), torch.tensor(1.0, device=D)])
    return out


def _optimizer(cls):
    net = nn.Linear(3, 2, bias=False).to(D)
    opt = cls(net.parameters())
    for _ in range(2):
        net(R(4, 3)).sum().backward()
        opt.step()


def _positions():
    m = S.SinusoidalPositionalEmbedding(4, 0).to(D)
    return m(I(2, 3)), m(I(2, 12))


def _alibi():
    return S.ALiBi(2).to(D)(R(1, 2, 3, 3))


def _attention():
    m = S.CausalSelfAttention(4).to(D)
    return m(R(1, 3, 4)), m(R(1, 5, 4))


def _meter():
    m = S.AverageMeter()
    m.update(R(1).sum(), 2)
    m.update(R(1).sum(), 2)
    return float(m.avg)


def _buffer(priorities):
    b = S.ReplayBuffer(4, 2, D)
    for _ in range(5):
        b.add(R(2), 1.0)
    obs, reward, rows = b.sample(3)
    if priorities:
        b.update_priorities(rows, obs.sum(1) - reward)


def _teacher(update):
    net = nn.Linear(3, 2).to(D)
    t = S.EMATeacher(net)
    with t.applied(net):
        net(R(1, 3))
    if update:
        t.update(net)


CALLS = {
    "move": lambda: S.move_to_device({"a": [torch.zeros(2)], "b": (torch.ones(2), 3)}, D)["a"][0] + R(2),
    "move_cuda": lambda: S.move_to_cuda(torch.zeros(2)) + R(2),
    "mask": lambda: S.lengths_to_mask(LENS()),
    "padding_mask": lambda: S.lengths_to_padding_mask(LENS()),
    "collate": lambda: S.collate_tokens([I(3), I(2)], 0, True),
    "positions": lambda: S.make_positions(I(2, 3), 0),
    "first_true": lambda: S.first_true_indices(I(2, 3) > 2),
    "logprobs": lambda: S.logprobs_from_logits(R(2, 3, 6), I(2, 3)),
    "whiten": lambda: S.masked_whiten(R(2, 3), I(2, 3) > 0, False),
    "masked_mean": lambda: S.masked_mean(R(2, 3), I(2, 3) > 0, 1),
    "sinusoidal": _positions,
    "rotary": lambda: S.RotaryEmbedding(4).to(D)(R(2, 3, 4)),
    "alibi": _alibi,
    "attention": _attention,
    "value_head": lambda: critic()(I(2, 3)),
    "sample": lambda: S.sample_decode(lm(), I(2, 2), 3),
    "beam": lambda: S.beam_search(lm(), I(2, 2), 2, 2),
    "dpo": lambda: S.dpo_loss(R(3), R(3), R(3), R(3)),
    "dpo_free": lambda: S.dpo_loss(R(3), R(3), R(3), R(3), reference_free=True),
    "kto": lambda: S.kto_loss(R(3), R(3), [True, False, True]),
    "ppo": _ppo_step,
    "ppo_normalize": lambda: _ppo().normalize_scores(R(3)),
    "ppo_running": lambda: _ppo().running_normalize(R(3)),
    "ppo_explained": lambda: _ppo().explained_variance(R(2, 3), R(2, 3)),
    "meter": _meter,
    "buffer": lambda: _buffer(False),
    "buffer_priorities": lambda: _buffer(True),
    "teacher": lambda: _teacher(False),
    "teacher_update": lambda: _teacher(True),
    "lion": lambda: _optimizer(S.LionOptimizer),
    "adafactor": lambda: _optimizer(S.AdafactorLike),
}
