"""transformers, and what takes and gives its models: peft, trl."""

import copy

import dt
import torch
from accelerate import Accelerator


@dt.models("transformers.BatchEncoding", "transformers.BatchFeature")
class BatchEncoding(dict):
    def __init__(self, data=None, **options):
        self.update(data)

    def __getattr__(self, name):
        return self[name]

    def to(self, device=None, **options):
        return dt.move(self, device)


@dt.models("transformers.utils.is_torch_fx_proxy", "transformers.utils.fx.is_torch_fx_proxy")
def is_torch_fx_proxy(x):
    """What is run is no trace."""
    return False


def encoding(return_tensors):
    """What a tokenizer or a processor makes."""
    if return_tensors is None:
        return dt.unknown()
    made = BatchEncoding({})
    for name in (
        "input_ids",
        "attention_mask",
        "token_type_ids",
        "pixel_values",
        "input_features",
        "input_values",
        "labels",
    ):
        made[name] = torch.zeros(2, 3)
    return made


@dt.models(
    "transformers.*Tokenizer", "transformers.*TokenizerFast", "transformers.*Processor*", "transformers.*Extractor"
)
class Tokenizer:
    @classmethod
    def from_pretrained(cls, name=None, *inputs, **options):
        return Tokenizer()

    def __call__(self, *texts, return_tensors=None, **options):
        return encoding(return_tensors)

    def encode(self, *texts, return_tensors=None, **options):
        return dt.unknown() if return_tensors is None else torch.zeros(2, 3)

    def pad(self, encoded, return_tensors=None, **options):
        return encoding(return_tensors)


@dt.models("transformers.*Config", "peft.*Config", "accelerate.utils.*Config", "diffusers.*Config")
class Config:
    def __init__(self, *values, **options):
        pass

    @classmethod
    def from_pretrained(cls, name=None, *inputs, **options):
        return dt.unknown()


@dt.models(
    "transformers.default_data_collator",
    "transformers.data.data_collator.default_data_collator",
)
def default_data_collator(features, return_tensors="pt"):
    return encoding("pt")


@dt.models("transformers.DataCollator*", "trl.DataCollator*")
class DataCollator:
    def __init__(self, *parts, **options):
        pass

    def __call__(self, features, return_tensors=None):
        return encoding("pt")


class ModelOutput:
    def __init__(self, tensor, **parts):
        self.logits = tensor
        self.last_hidden_state = tensor
        self.image_embeds = tensor
        self.text_embeds = tensor
        self.pooler_output = tensor
        self.start_logits = tensor
        self.end_logits = tensor
        self.prediction_logits = tensor
        self.sample = tensor
        self.loss = tensor.sum()

    def __getitem__(self, index):
        return dt.unknown() if index is None else self.logits

    def to_tuple(self):
        return (self.logits,)


@dt.models(
    "transformers.modeling_outputs.*",
    "transformers.*.ModelOutput",
    "transformers.models.*Output*",
    "diffusers.utils.BaseOutput",
    "diffusers.*Output",
)
class GivenOutput:
    """What a model of the program gives: its parts have names. The class says which is the first one."""

    def __init__(self, *values, loss=None, logits=None, last_hidden_state=None, sample=None, **parts):
        named = [each for each in (loss, logits, last_hidden_state, sample) if each is not None]
        self.first = [*values, *named]
        self.loss = loss
        self.logits = logits
        self.last_hidden_state = values[0] if values else last_hidden_state
        self.sample = values[0] if values else sample
        for name, value in parts.items():
            setattr(self, name, value)

    def __getitem__(self, index):
        if isinstance(index, str):
            return getattr(self, index)
        return self.first[0] if index == 0 and self.first else dt.unknown()


@dt.models("transformers.PreTrainedModel", "transformers.modeling_utils.PreTrainedModel")
class PreTrainedModel(torch.nn.Module):
    def __init__(self, config=None, *inputs, **options):
        super().__init__()
        self.config = config

    @classmethod
    def from_pretrained(cls, name=None, *inputs, config=None, device_map=None, **options):
        saved = dt.saved(name)
        model = cls(config) if saved is None else copy.deepcopy(saved)
        return placed(model, device_map, options)

    def save_pretrained(self, save_directory, **options):
        dt.save(save_directory, self)

    @classmethod
    def from_config(cls, config=None, **options):
        return cls(config)


def placed(model, device_map, options):
    """A loader puts the model where the map says."""
    if "quantization_config" in options or "load_in_8bit" in options or "load_in_4bit" in options:
        return dt.spread(model)
    model.is_quantized = model.is_loaded_in_8bit = model.is_loaded_in_4bit = False
    return dt.placed(model, device_map)


class Part(torch.nn.Module):
    """A part of a model whose layers are on several devices."""

    def __init__(self, hooks, index=None):
        super().__init__()
        self.hooks = hooks
        self.index = index
        dt.own(self)
        dt.layer(self, hooks, index)

    def __getattr__(self, name):
        return Part(self.hooks, self.index)

    def __getitem__(self, index):
        return Part(self.hooks, index)

    def register_forward_hook(self, hook, **options):
        self.hooks.append((hook, self))
        return dt.unknown()

    def forward(self, *inputs, **named):
        return dt.unknown()


@dt.models("transformers.Auto*Model*", "transformers.*Model", "transformers.*For*", "transformers.*Model*WithHeads*")
class Pretrained(PreTrainedModel):
    """A model of the library: its layers are one thing, which its tokens must come to."""

    def __init__(self, config=None, *inputs, **options):
        super().__init__(config)
        self.layer_hooks = []
        dt.own(self)

    def __getattr__(self, name):
        """Of a model that is spread, the layers are what is reached through it."""
        return Part(self.layer_hooks) if name in ("model", "transformer", "base_model") and dt.is_spread(self) else dt.unknown()

    def run_hooks(self):
        for hook, part in self.layer_hooks:
            hook(part, (dt.output(part),), dt.output(part))

    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        pixel_values=None,
        inputs_embeds=None,
        input_features=None,
        input_values=None,
        **inputs,
    ):
        self.run_hooks()
        return ModelOutput(dt.run(self, input_ids, pixel_values, inputs_embeds, input_features, input_values))

    def generate(self, inputs=None, input_ids=None, pixel_values=None, input_features=None, **options):
        return dt.run(self, inputs, input_ids, pixel_values, input_features)

    def get_image_features(self, pixel_values=None, **inputs):
        return dt.run(self, pixel_values)

    def get_text_features(self, input_ids=None, **inputs):
        return dt.run(self, input_ids)


@dt.models("peft.AutoPeftModel*")
class AutoPeftModel(Pretrained):
    pass


@dt.models("peft.get_peft_model", "peft.prepare_model_for_kbit_training", "peft.inject_adapter_in_model")
def get_peft_model(model, *configs, **options):
    """The adapters are where the layers are that they adapt."""
    return model


@dt.models("peft.PeftModel", "peft.PeftModel*")
class PeftModel:
    @classmethod
    def from_pretrained(cls, model=None, *adapters, device_map=None, **options):
        return model


@dt.models("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments", "trl.SFTConfig", "trl.*Config")
class TrainingArguments:
    def __init__(self, output_dir=None, *values, no_cuda=False, use_cpu=False, deepspeed=None, **options):
        self.deepspeed = deepspeed
        if deepspeed is not None or dt.has_ranks():
            torch.distributed.init_process_group(dt.backend_of_process())
        self._on_cpu = no_cuda is True or use_cpu is True

    @property
    def device(self):
        """Of arguments that a caller passes, too."""
        return torch.device("cpu") if self._on_cpu is True else dt.device_of_process()


@dt.models("transformers.Trainer", "transformers.Seq2SeqTrainer", "transformers.trainer.Trainer", "trl.*Trainer")
class Trainer:
    """Moves the model and each batch to the device of its arguments."""

    def __init__(
        self,
        model=None,
        args: TrainingArguments = None,
        data_collator=None,
        train_dataset=None,
        eval_dataset=None,
        processing_class=None,
        model_init=None,
        **options,
    ):
        self.args = TrainingArguments() if args is None else args
        self.model = model_init() if model is None else model
        self.data_collator = DataCollator() if data_collator is None else data_collator
        self.train_dataset = train_dataset
        self.eval_dataset = eval_dataset
        if dt.has_ranks():
            torch.distributed.init_process_group(dt.backend_of_process())
        self.accelerator = Accelerator()
        self.accelerator.device = self.args.device
        self.model = dt.moved(self.model, self.args.device)

    def get_train_dataloader(self):
        return torch.utils.data.DataLoader(self.train_dataset, collate_fn=self.data_collator)

    def get_eval_dataloader(self, eval_dataset=None):
        return torch.utils.data.DataLoader(self.eval_dataset, collate_fn=self.data_collator)

    def _prepare_inputs(self, inputs):
        return dt.moved(inputs, self.args.device)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        loss = outputs["loss"] if isinstance(outputs, dict) else outputs[0]
        return (loss, outputs) if return_outputs else loss

    def training_step(self, model, inputs, num_items_in_batch=None):
        return self.compute_loss(model, self._prepare_inputs(inputs))

    def prediction_step(self, model, inputs, prediction_loss_only=False, ignore_keys=None):
        return (self.compute_loss(model, self._prepare_inputs(inputs)), dt.unknown(), dt.unknown())

    def train(self, *checkpoints, **options):
        for inputs in self.get_train_dataloader():
            self.training_step(self.model, inputs)
        return dt.unknown()

    def evaluate(self, eval_dataset=None, **options):
        for inputs in self.get_eval_dataloader(eval_dataset):
            self.prediction_step(self.model, inputs)
        return dt.unknown()

    def run_steps(self):
        self.train()
        self.evaluate()


@dt.models("transformers.HfArgumentParser", "transformers.hf_argparser.HfArgumentParser", "trl.TrlParser")
class HfArgumentParser:
    """Makes its objects of what the user says."""

    def __init__(self, dataclass_types=None, **options):
        self.types = dataclass_types if isinstance(dataclass_types, (list, tuple)) else [dataclass_types]

    def parse_args_into_dataclasses(self, *values, **options):
        return tuple([dt.chosen(each()) for each in self.types])

    def parse_args_and_config(self, *values, **options):
        return self.parse_args_into_dataclasses()


@dt.models("transformers.pipeline", "transformers.pipelines.pipeline")
def pipeline(task=None, model=None, *parts, device=None, device_map=None, **options):
    return dt.unknown()
