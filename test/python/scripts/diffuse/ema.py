import copy

import torch


class EMA:
    def __init__(self, model, beta=0.9, update_after=1):
        self.model = model
        self.shadow = copy.deepcopy(model).eval().requires_grad_(False)
        self.beta, self.update_after = beta, update_after
        self.step = torch.tensor(0)

    @torch.no_grad()
    def update(self):
        self.step += 1
        beta = 0.0 if self.step <= self.update_after else self.beta
        for s, p in zip(self.shadow.parameters(), self.model.parameters()):
            s.lerp_(p, 1 - beta)
        for s, b in zip(self.shadow.buffers(), self.model.buffers()):
            s.copy_(b)

    def state_dict(self):
        return {"shadow": self.shadow.state_dict(), "step": self.step}

    def load_state_dict(self, state):
        self.shadow.load_state_dict(state["shadow"])
        self.step = state["step"].cpu()
