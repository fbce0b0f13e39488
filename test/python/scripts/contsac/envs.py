import numpy as np


class PointMass:
    action_low, action_high = np.array([-1.0, -1.0], np.float32), np.array([1.0, 1.0], np.float32)
    obs_dim, act_dim = 4, 2

    def __init__(self, seed=0, horizon=10):
        self.rng, self.horizon = np.random.default_rng(seed), horizon

    def reset(self):
        self.t = 0
        self.pos, self.vel = self.rng.normal(size=2).astype(np.float32), np.zeros(2, np.float32)
        return self._obs()

    def _obs(self):
        return np.concatenate([self.pos, self.vel]).astype(np.float32)

    def step(self, action):
        self.t += 1
        self.vel = 0.9 * self.vel + 0.1 * np.clip(action, self.action_low, self.action_high)
        self.pos = self.pos + self.vel
        return self._obs(), -float((self.pos ** 2).sum()), self.t >= self.horizon, {}
