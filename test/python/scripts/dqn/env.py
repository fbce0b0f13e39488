import random


class Corridor:
    """Walk right to the goal; a wrong step costs."""

    actions = 2

    def __init__(self, length=5, seed=0):
        self.length, self.rng = length, random.Random(seed)

    def reset(self):
        self.position, self.t = 0, 0
        return self.observe()

    def observe(self):
        return [self.position / self.length, self.t / (2 * self.length), self.rng.random() * 0.01]

    def step(self, action):
        self.position = max(0, self.position + (1 if action == 1 else -1))
        self.t += 1
        done = self.position >= self.length or self.t >= 2 * self.length
        return self.observe(), 1.0 if self.position >= self.length else -0.1, done
