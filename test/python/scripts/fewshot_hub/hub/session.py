import threading

import numpy as np
import torch

from hub import registry


class Session:
    """Holds a model on a device, and remembers the answers to requests by key."""

    def __init__(self, name, device=None, checkpoint=None, half_cache=False, **options):
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.model = registry.create(name, **options)
        if checkpoint is not None:
            self.model.load_state_dict(torch.load(checkpoint, map_location=self.device)["weights"])
        self.model = self.model.to(self.device).eval()
        self.lock = threading.Lock()
        self.cache = {}
        self.shift = None
        self.half_cache = half_cache

    def calibrate(self, samples):
        """Learn the mean of the features, to be taken off later."""
        self.shift = self.raw(samples).mean(0).cpu()

    @torch.no_grad()
    def raw(self, batch):
        if isinstance(batch, np.ndarray):
            batch = torch.from_numpy(batch)
        with self.lock:
            return self.model(batch.float().to(self.device))

    def features(self, batch):
        result = self.raw(batch)
        if self.shift is not None:
            result = result - self.shift  # raises
        return result

    def lookup(self, keys, rows):
        """Features for keyed rows; only those not seen before are computed."""
        missing = [i for i, key in enumerate(keys) if key not in self.cache]
        if missing:
            fresh = self.raw(rows[missing])
            for i, value in zip(missing, fresh):
                self.cache[keys[i]] = value.half().cpu() if self.half_cache else value
        found = [self.cache[key].float() for key in keys]
        return torch.stack(found)

    def export(self, batch):
        return self.features(batch).cpu().numpy()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.cache.clear()
        return False
