import torch


class ShadowEMA:
    """Keeps a dict of averaged parameters."""

    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = {k: p.detach().clone() for k, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        for name, p in model.named_parameters():
            self.shadow[name].mul_(self.decay).add_(p, alpha=1 - self.decay)  # raises

    def copy_to(self, model):
        for name, p in model.named_parameters():
            p.data.copy_(self.shadow[name])

    def state_dict(self):
        return {'decay': self.decay, 'shadow': self.shadow}

    def load_state_dict(self, state):
        self.decay = state['decay']
        self.shadow = state['shadow']


class ModuleEMA:
    def __init__(self, module, decay):
        self.module = module.eval().requires_grad_(False)
        self.decay = decay
        self.updates = 0

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        own, other = self.module.state_dict(), model.state_dict()
        for key in own:
            if own[key].dtype.is_floating_point:
                own[key].lerp_(other[key], 1 - decay)  # raises

    def copy_to(self, model):
        model.load_state_dict(self.module.state_dict())

    def state_dict(self):
        return self.module.state_dict()

    def load_state_dict(self, state):
        self.module.load_state_dict(state)
