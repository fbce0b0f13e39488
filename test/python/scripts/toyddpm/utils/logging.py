import time

import torch


class Meter:
    def __init__(self):
        self.total = torch.zeros(())
        self.count = 0

    def add(self, value):
        self.total = self.total + value.detach()
        self.count += 1

    def value(self):
        return (self.total / max(self.count, 1)).item()


class Stopwatch:
    seconds = 0.0

    def __enter__(self):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self._start = time.perf_counter()
        return self

    def __exit__(self, *exc):
        self.seconds = time.perf_counter() - self._start
