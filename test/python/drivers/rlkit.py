import numpy as np
import torch
from rlkit import *

DEV = torch.device("cuda:0")


def obs(n=6):
    return torch.randn(n, 4, device=DEV)


def normalizer():
    m = ObsNormalizer((4,)).to(DEV)
    m.update(obs())
    return m(obs())


def rollout():
    b = RolloutBuffer(3, 6, 4, DEV)
    for _ in range(3):
        b.add(obs(), np.ones(6, dtype=np.float32), torch.rand(6, 1, device=DEV), np.zeros(6))
    return b


def fill(kind):
    b = kind(50, 4, DEV)
    for i in range(20):
        b.add(np.random.randn(4), i % 3, 1.0, False)
    return b


def priorities():
    b = fill(PrioritizedReplayBuffer)
    b.sample(5)
    b.update_priorities(torch.rand(5, device=DEV))


def frames():
    return FrameStack(4).reset(torch.rand(1, 8, 8, device=DEV))


def warm_start():
    agent = DQNAgent(4, 3)
    agent.clone_behaviour(torch.randn(6, 4), torch.randint(0, 3, (6,)))
    agent.to(DEV).learn(fill(ReplayBuffer).sample(5))


def cold_start():
    agent = DQNAgent(4, 3).to(DEV)
    agent.clone_behaviour(obs(), torch.randint(0, 3, (6,), device=DEV))
    agent.learn(fill(ReplayBuffer).sample(5))


def c51():
    p = torch.rand(6, 11, device=DEV).softmax(-1)
    return C51Projection(-5.0, 5.0, 11)(p, torch.rand(6, device=DEV), torch.zeros(6, device=DEV))


def logp():
    return torch.randn(5, 6, device=DEV)


CALLS = {
    "normalizer": normalizer,
    "reward_scaler": lambda: RewardScaler(6)(torch.rand(6, device=DEV), torch.zeros(6, device=DEV)),
    "gae": lambda: rollout().compute_gae(torch.rand(6, device=DEV)),
    "returns": lambda: rollout().discounted_returns(),
    "minibatches": lambda: list(rollout().minibatches(4)),
    "replay": lambda: fill(ReplayBuffer).sample(5),
    "priorities": priorities,
    "frames": frames,
    "policy": lambda: CategoricalPolicy(4, 3).to(DEV).act(obs(), 0.5),
    "policy_recurrent": lambda: CategoricalPolicy(4, 3, recurrent=True).to(DEV)(obs()),
    "policy_state": lambda: CategoricalPolicy(4, 3, recurrent=True).to(DEV)(obs(), torch.zeros(6, 4, device=DEV)),
    "gaussian": lambda: SquashedGaussianPolicy(4, -np.ones(2), np.ones(2)).to(DEV)(obs()),
    "smooth": lambda: TD3Exploration([0.2, 0.1]).smooth(torch.rand(6, 2, device=DEV)),
    "c51": c51,
    "vtrace": lambda: vtrace_weights(logp(), logp()),
    "vtrace_steps": lambda: vtrace_weights(logp(), logp(), per_step=True),
    "ppo": lambda: ppo_loss(torch.rand(6, device=DEV), torch.randn(6, device=DEV)),
    "warm_start": warm_start,
    "cold_start": cold_start,
    "prioritized": lambda: DQNAgent(4, 3).to(DEV).learn(fill(PrioritizedReplayBuffer).sample(5)),
}
