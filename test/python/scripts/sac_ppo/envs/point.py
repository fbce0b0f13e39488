import numpy as np


class PointEnv:
    """Move a point to the origin."""

    observation_dim = 4
    action_dim = 2

    def __init__(self, seed, horizon=8):
        self.rng = np.random.default_rng(seed)
        self.horizon = horizon

    def reset(self):
        self.time = 0
        self.state = self.rng.normal(size=4).astype(np.float32)
        return self.state.copy()

    def step(self, action):
        self.time += 1
        self.state[2:] += 0.1 * np.clip(action, -1, 1)
        self.state[:2] += 0.1 * self.state[2:]
        reward = -float(np.abs(self.state[:2]).sum())
        return self.state.copy(), reward, self.time >= self.horizon


class VectorEnv:
    def __init__(self, envs):
        self.envs = envs
        self.observation_dim = envs[0].observation_dim
        self.action_dim = envs[0].action_dim

    def reset(self):
        return np.stack([env.reset() for env in self.envs])

    def step(self, actions):
        observations, rewards, dones = [], [], []
        for env, action in zip(self.envs, actions):
            observation, reward, done = env.step(action)
            observations.append(env.reset() if done else observation)
            rewards.append(reward)
            dones.append(done)
        return np.stack(observations), np.array(rewards, np.float32), np.array(dones, np.float32)
