import itertools


def move(target, device):
    return {k: v.to(device) if hasattr(v, "to") else v for k, v in target.items()}


class Engine:
    def __init__(self, model, optimizer, loader, device):
        self.model, self.optimizer, self.loader, self.device = model, optimizer, loader, device
        self.hooks = []
        self.iteration = 0
        self.outputs = {}

    def register(self, hook):
        hook.engine = self
        self.hooks.append(hook)

    def emit(self, event):
        for hook in self.hooks:
            getattr(hook, event, lambda: None)()

    def _stream(self):
        for _ in itertools.count():
            yield from self.loader

    def run(self, iterations):
        self.emit("before_train")
        for images, targets in itertools.islice(self._stream(), iterations):
            self.model.train()
            self.emit("before_step")
            losses = self.model(images.to(self.device), [move(t, self.device) for t in targets])
            total = sum(losses.values())
            self.optimizer.zero_grad()
            total.backward()
            self.optimizer.step()
            self.iteration += 1
            self.outputs = {k: v.detach() for k, v in losses.items()}
            self.emit("after_step")
        self.emit("after_train")
