import numpy as np
import torch
from torch import nn

import preference_rl as L

D = "cuda:0"


def r(*shape):
    return torch.randn(shape, device=D)


def replay(cls):
    buffer = cls(6, {"observation": (3,), "reward": ()})
    for _ in range(8):
        buffer.add(observation=r(3), reward=r())
    return buffer


def replay_loss(cls):
    buffer = replay(cls)
    batch = buffer.sample(4, D)
    critic = L.TwinCritic(3).to(D)
    errors = critic.td_error(batch["observation"], batch["reward"], batch["observation"])
    critic.polyak()
    L.weighted_td_loss(errors, batch).backward()
    return buffer, batch, errors


def priorities():
    buffer, batch, errors = replay_loss(L.PrioritizedReplay)
    buffer.update_priorities(batch["index"], errors)


def nstep():
    buffer = L.NStepBuffer()
    for _ in range(4):
        buffer.push(r(2))


def noise(maker):
    for _ in range(2):
        maker(r(2, 3))


def dynamics(x):
    return x[:, :3] + x[:, 3:].sum(-1, keepdim=True), x.sum(-1)


def planned(cls):
    planner = cls(dynamics, 2)
    planner.plan(r(1, 3))
    planner.plan(r(1, 3))


def ppo():
    policy = L.MaskedPolicy(3, 4).to(D)
    advantages, returns = L.AdvantageEstimator()(r(8, 1), r(8, 1), r(1))
    batch = L.RolloutBatch(r(8, 3), torch.randint(1, 4, (8,), device=D), r(8), r(8), advantages[:, 0], returns[:, 0])
    L.PPOUpdater(policy, L.PPOConfig()).update(batch)


def critic(hide):
    L.TwinCritic(3, hide).to(D).td_error(r(2, 3), r(2), r(2, 3))


def shape(**kw):
    L.RewardShaper(score_functions=[sum])(r(2, 4), r(2, 4), torch.tensor([3, 1], device=D), **kw)


def table(name):
    getattr(L.ReferenceTable(np.zeros(5)), name)(torch.tensor([1, 2], device=D))


CALLS = {
    "mask": lambda: L.episode_mask(torch.tensor([2, 4], device=D)),
    "gae": lambda: L.AdvantageEstimator()(r(5, 2), r(5, 2), r(2)),
    "gae_matrix": lambda: L.MatrixEstimator()(r(5, 2), r(5, 2), r(2)),
    "vtrace": lambda: L.VTraceEstimator(r(5, 2))(r(5, 2), r(5, 2), r(2)),
    "moments_scalar": lambda: L.RunningMoments().update(r(6)).normalize(r(6)),
    "moments_vector": lambda: L.RunningMoments((3,)).update(r(6, 3)),
    "replay": lambda: replay_loss(L.ReplayBuffer),
    "replay_weighted": lambda: replay_loss(L.PrioritizedReplay),
    "replay_priorities": priorities,
    "nstep": nstep,
    "noise_ou": lambda: noise(L.OrnsteinUhlenbeck(3)),
    "noise_decaying": lambda: noise(L.DecayingNoise()),
    "recurrent": lambda: L.RecurrentPolicy(3, 4).to(D)(r(2, 5, 3)),
    "stateful": lambda: L.StatefulPolicy(3, 4).to(D)(r(2, 5, 3)),
    "squashed_values": lambda: L.SquashedGaussianPolicy(3, 2).to(D).evaluate(r(2, 3), r(2, 2)),
    "squashed_act": lambda: L.SquashedGaussianPolicy(3, 2).to(D).act(r(2, 3)),
    "critic_hidden": lambda: critic(True),
    "c51": lambda: L.DistributionalLoss()(r(4, 5), r(4, 5).softmax(-1), r(4)),
    "quantile": lambda: L.QuantileLoss()(r(4, 5), r(4, 5), r(4)),
    "planner": lambda: planned(L.CrossEntropyPlanner),
    "planner_warm": lambda: planned(L.WarmStartPlanner),
    "ppo": ppo,
    "value_head": lambda: L.ValueHead(8).to(D)(r(2, 4, 8), torch.ones(2, 4, dtype=torch.long, device=D)),
    "shaper": shape,
    "group": lambda: L.GroupAdvantage(2)(r(4, 3)),
    "group_weighted": lambda: L.GroupAdvantage(2, [1.0, 0.5, 0.2])(r(4, 3)),
    "table_lookup": lambda: table("lookup"),
    "table_gather": lambda: table("gather"),
    "dpo_reference_free": lambda: L.PreferenceLoss(reference_free=True)(r(4), r(4), None, None),
    "kto": lambda: L.KTOLoss()(L.PreferenceLoss.sequence_log_probs(r(3, 5, 7), torch.randint(7, (3, 5), device=D)), r(3), [True, False, True]) + L.IPOLoss()(r(4), r(4), r(4), r(4)),
}
