import torch


class EMAModel:
    def __init__(self, parameters, decay=0.9):
        self.decay = decay
        self.shadow_params = [p.clone().detach() for p in parameters]
        self.optimization_step = 0

    @torch.no_grad()
    def step(self, parameters):
        self.optimization_step += 1
        decay = min(self.decay, (1 + self.optimization_step) / (10 + self.optimization_step))
        for s_param, param in zip(self.shadow_params, list(parameters)):
            if param.requires_grad:
                s_param.sub_((1 - decay) * (s_param - param))  # raises
            else:
                s_param.copy_(param)

    def copy_to(self, parameters):
        for s_param, param in zip(self.shadow_params, parameters):
            param.data.copy_(s_param.data)

    def to(self, device=None):
        self.shadow_params = [p.to(device=device) for p in self.shadow_params]

    def state_dict(self):
        return {"decay": self.decay, "optimization_step": self.optimization_step, "shadow_params": self.shadow_params}

    def load_state_dict(self, state):
        self.decay = state["decay"]
        self.optimization_step = state["optimization_step"]
        self.shadow_params = state["shadow_params"]
