from collections import deque

import numpy as np


class PointMass:
    """Push a point to the origin with four discrete pushes."""
    PUSHES = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]], dtype=np.float32) * 0.2

    obs_dim = 4
    n_actions = 4

    def __init__(self, seed, horizon):
        self.rng = np.random.RandomState(seed)
        self.horizon = horizon

    def reset(self):
        self.t = 0
        self.x = self.rng.uniform(-1, 1, 2).astype(np.float32)
        self.v = np.zeros(2, dtype=np.float32)
        return np.concatenate([self.x, self.v])

    def step(self, action):
        self.t += 1
        self.v = 0.8 * self.v + self.PUSHES[int(action)]
        self.x = self.x + 0.3 * self.v
        reward = -float(np.linalg.norm(self.x))
        return np.concatenate([self.x, self.v]), reward, self.t >= self.horizon


class FrameStack:
    def __init__(self, env, k):
        self.env, self.k = env, k
        self.frames = deque(maxlen=k)
        self.obs_dim = env.obs_dim * k
        self.n_actions = env.n_actions

    def reset(self):
        first = self.env.reset()
        self.frames.extend([first] * self.k)
        return np.concatenate(self.frames)

    def step(self, action):
        obs, reward, done = self.env.step(action)
        self.frames.append(obs)
        return np.concatenate(self.frames), reward, done
