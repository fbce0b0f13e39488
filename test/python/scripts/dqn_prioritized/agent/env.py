import numpy as np


class Corridor:
    """Walk to the goal at the right end; the observation is the noisy one-hot position."""

    actions = 3

    def __init__(self, length=8, horizon=20, seed=0):
        self.length, self.horizon = length, horizon
        self.rng = np.random.RandomState(seed)

    @property
    def observation_size(self):
        return self.length

    def observe(self):
        observation = self.rng.normal(0, 0.05, self.length)
        observation[self.position] += 1
        return observation.astype(np.float32)

    def reset(self):
        self.position, self.time = 0, 0
        return self.observe()

    def step(self, action):
        self.time += 1
        self.position = int(np.clip(self.position + action - 1, 0, self.length - 1))
        done = self.position == self.length - 1
        return self.observe(), (1.0 if done else -0.01), done, self.time >= self.horizon
