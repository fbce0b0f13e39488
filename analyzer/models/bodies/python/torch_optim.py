"""What optimizers of a project derive from."""

import dt


@dt.models("torch.optim.Optimizer", "torch.optim.optimizer.Optimizer")
class Optimizer:
    """The state has a dictionary for each parameter: one stands for all."""

    def __init__(self, params, defaults):
        self.defaults = defaults
        self.param_groups = [{"params": list(params), **defaults}]
        self.state = {dt.unknown(): {}}

    def zero_grad(self, set_to_none=True):
        pass

    def state_dict(self):
        return dt.unknown()

    def load_state_dict(self, state_dict):
        self.state = dt.unknown()
