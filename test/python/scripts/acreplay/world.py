import torch


class Pendulumish:
    """A damped point on a circle; all on the CPU, as simulators are."""

    obs_dim, act_dim = 3, 1
    low, high = torch.tensor([-2.0]), torch.tensor([2.0])

    def __init__(self, horizon=12):
        self.horizon = horizon

    def _obs(self):
        return torch.stack([self.theta.cos(), self.theta.sin(), self.speed])

    def reset(self):
        self.t = 0
        self.theta, self.speed = torch.rand(()) * 6.28, torch.zeros(())
        return self._obs()

    def step(self, action):
        force = action.clamp(self.low, self.high)[0]
        self.speed = 0.95 * self.speed + 0.1 * (force + torch.sin(self.theta))
        self.theta = self.theta + 0.1 * self.speed
        self.t += 1
        reward = self.theta.cos() - 0.01 * force ** 2
        return self._obs(), reward, self.t >= self.horizon


def demonstrations(world, n):
    obs = world.reset()
    for _ in range(n):
        act = -obs[1:2]
        nxt, rew, done = world.step(act)
        yield obs, act, rew, nxt, torch.tensor(0.0 if done else 1.0)
        obs = world.reset() if done else nxt
