"""diffusers."""

import dt
import torch
import transformers


@dt.models("diffusers.*Scheduler")
class Scheduler:
    """Tables on the CPU; those that add_noise needs follow what it is given."""

    def __init__(self, *values, **options):
        self.alphas_cumprod = torch.zeros(8)
        self.timesteps = torch.zeros(8)

    @classmethod
    def from_pretrained(cls, name=None, *inputs, **options):
        return Scheduler()

    @classmethod
    def from_config(cls, config=None, **options):
        return Scheduler()

    def set_timesteps(self, num_inference_steps=None, device=None, **options):
        self.timesteps = dt.moved(torch.zeros(8), torch.device("cpu") if device is None else device)

    def add_noise(self, original_samples, noise, timesteps):
        self.alphas_cumprod = self.alphas_cumprod.to(original_samples.device)
        return original_samples + noise

    def get_velocity(self, sample, noise, timesteps):
        return sample - noise

    def scale_model_input(self, sample, timestep=None):
        return sample

    def step(self, model_output, timestep, sample, **options):
        return dt.unknown()


@dt.models(
    "diffusers.*Model", "diffusers.Autoencoder*", "diffusers.UNet*", "diffusers.*Transformer2D*", "diffusers.VQModel"
)
class Model(transformers.PreTrainedModel):
    def __init__(self, *values, **options):
        super().__init__()
        dt.own(self)

    @classmethod
    def from_pretrained(cls, name=None, *inputs, device_map=None, **options):
        return dt.placed(Model(), device_map)

    def forward(self, sample=None, timestep=None, encoder_hidden_states=None, **inputs):
        return Output(dt.run(self, sample, encoder_hidden_states))

    def encode(self, x, **options):
        return Encoded(dt.run(self, x))

    def decode(self, z, **options):
        return Output(dt.run(self, z))


@dt.models("diffusers.EMAModel", "diffusers.training_utils.EMAModel")
class EMAModel:
    """Averages of parameters, made where these are. What was saved comes back on the CPU, and takes their place."""

    def __init__(self, parameters=None, *values, **options):
        self.shadow_params = [] if parameters is None else [each.detach().clone() for each in parameters]

    @classmethod
    def from_pretrained(cls, path, model_cls=None, **options):
        loaded = EMAModel()
        loaded.shadow_params = [torch.zeros(3)]
        return loaded

    def to(self, device=None, dtype=None, **options):
        self.shadow_params = [each.to(device) for each in self.shadow_params]

    def state_dict(self):
        return {"shadow_params": self.shadow_params}

    def load_state_dict(self, state_dict):
        self.shadow_params = state_dict["shadow_params"]

    def step(self, parameters):
        for shadow, parameter in zip(self.shadow_params, parameters):
            shadow.sub_(shadow - parameter)


class Output:
    def __init__(self, tensor):
        self.sample = tensor

    def __getitem__(self, index):
        return self.sample


class Encoded:
    def __init__(self, tensor):
        self.latent_dist = Distribution(tensor)


class Distribution:
    def __init__(self, tensor):
        self.mean = tensor

    def sample(self, generator=None):
        return self.mean

    def mode(self):
        return self.mean


@dt.models("diffusers.*Pipeline*")
class Pipeline:
    """Moves its models, in place."""

    def __init__(self, *parts, **options):
        self.device = torch.device("cpu")

    @classmethod
    def from_pretrained(cls, name=None, *inputs, **options):
        return Pipeline()

    def register_modules(self, **parts):
        for name, part in parts.items():
            setattr(self, name, part)

    def to(self, device=None, *others, **options):
        self.device = torch.device(device)
        return self

    def __call__(self, *inputs, **options):
        return dt.unknown()
