"""Optimizers, and what those of a project derive from."""

import dt


@dt.models("torch.optim.Optimizer", "torch.optim.optimizer.Optimizer")
class Optimizer:
    """The state has a dictionary for each parameter: one stands for all, where these are together."""

    def __init__(self, params, defaults):
        self.defaults = defaults
        self.param_groups = [{**defaults, "params": list(params)}]
        self._state = {dt.unknown(): {}}

    @property
    def state(self):
        return self._state if dt.are_together(self.param_groups[0]["params"]) else dt.unknown()

    @state.setter
    def state(self, state):
        self._state = state

    def zero_grad(self, set_to_none=True):
        pass

    def state_dict(self):
        return dt.unknown()

    def load_state_dict(self, state_dict):
        self._state = dt.unknown()


@dt.models(
    "torch.optim.Adadelta",
    "torch.optim.Adam",
    "torch.optim.AdamW",
    "torch.optim.Adamax",
    "torch.optim.NAdam",
    "torch.optim.RAdam",
    "torch.optim.RMSprop",
)
class KeepingOptimizer:
    """What it keeps of a parameter is made by the first step, where the parameter is then."""

    def __init__(self, params, *options, **named):
        self._params = parameters_of(params)
        self._kept = dt.keeper(self._params)
        self.defaults = dt.unknown()

    def step(self, closure=None):
        if closure is not None:
            closure()
        dt.step(self._kept)

    def zero_grad(self, set_to_none=True):
        pass

    def load_state_dict(self, state_dict):
        """Brought to where the parameters are. What a program goes on with was saved after a step."""
        self._kept = dt.keeper(self._params)
        dt.step(self._kept)

    @property
    def state(self):
        """Who asks for it may move it."""
        self._kept = dt.unknown()
        return dt.unknown()

    @property
    def param_groups(self):
        self._kept = dt.unknown()
        return dt.unknown()


@dt.models("torch.optim.SGD")
class MomentumOptimizer(KeepingOptimizer):
    """Keeps something where it has a momentum."""

    def __init__(self, params, lr=0, momentum=0, *options, **named):
        self._momentum = momentum
        super().__init__(params)
        self._kept = dt.keeper(self._params, momentum)

    def load_state_dict(self, state_dict):
        self._kept = dt.keeper(self._params, self._momentum)
        dt.step(self._kept)


@dt.models("torch.optim.Adagrad")
class EagerOptimizer(KeepingOptimizer):
    """The same, made with the optimizer."""

    def __init__(self, params, *options, **named):
        super().__init__(params, *options, **named)
        dt.step(self._kept)


def parameters_of(params):
    """Of groups those of the first."""
    parameters = list(params)
    first = parameters[0]
    return list(first["params"]) if isinstance(first, dict) else parameters
