class Prefetcher:
    """Keeps one batch ahead on the device."""

    def __init__(self, loader, device):
        self.loader, self.device = loader, device

    def _move(self, batch):
        return tuple(x.to(self.device, non_blocking=True) for x in batch)

    def __iter__(self):
        waiting = None
        for batch in self.loader:
            if waiting is not None:
                yield waiting
            waiting = self._move(batch)
        if waiting is not None:
            yield waiting

    def __len__(self):
        return len(self.loader)
