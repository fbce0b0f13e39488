"""Where modules and tensors live: device maps, split models, configurations, inheritance, contexts."""
import copy
import enum
import io
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Dict, Optional, Union

import torch
import torch.nn as nn
import torch.nn.functional as F


class Place(enum.Enum):
    HOST = "cpu"
    MAIN = "cuda:0"
    SIDE = "cuda:1"

    @property
    def device(self):
        return torch.device(self.value)

    @classmethod
    def default(cls):
        return cls.MAIN if torch.cuda.is_available() else cls.HOST


@dataclass
class RunConfig:
    width: int = 6
    classes: int = 3
    device: Union[str, torch.device] = "cuda"
    model_device: Optional[str] = None
    device_map: Dict[str, int] = field(default_factory=dict)

    def __post_init__(self):
        self.device = torch.device(self.device)
        if self.model_device is None:
            self.model_device = str(self.device)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))  # raises


class SplitNet(nn.Module):
    """Halves on two devices, activations handed over in forward."""

    def __init__(self, config, first="cuda:0", second="cuda:1"):
        super().__init__()
        self.first, self.second = torch.device(first), torch.device(second)
        self.low = nn.Sequential(Block(config.width), Block(config.width)).to(self.first)
        self.high = Block(config.width).to(self.second)
        self.head = nn.Linear(config.width, config.classes).to(self.second)

    def forward(self, x):
        x = self.low(x.to(self.first))
        x = self.high(x.to(self.second))
        return self.head(x)


def _objective(logits, target):
    return F.cross_entropy(logits, target)  # raises


def case_split_net_target_at_output():
    model = SplitNet(RunConfig())
    x, y = torch.randn(4, 6, device="cuda:0"), torch.tensor([0, 1, 2, 0], device="cuda:0")
    logits = model(x)
    loss = _objective(logits, y.to(logits.device))
    loss.backward()
    return {str(parameter.grad.device) for parameter in model.parameters()}


def case_split_net_target_at_input():
    model = SplitNet(RunConfig())
    x, y = torch.randn(4, 6, device="cuda:0"), torch.tensor([0, 1, 2, 0], device="cuda:0")
    loss = _objective(model(x), y)
    loss.backward()


class ResidualSplit(SplitNet):
    def forward(self, x):
        kept = x = x.to(self.first)
        x = self.low(x)
        x = self.high(x.to(self.second, non_blocking=True))
        return self.head(x + kept)  # raises


class SkipSplit(SplitNet):
    def forward(self, x):
        x = self.low(x.to(self.first))
        skip, x = x.detach().mean(), x.to(self.second)
        return self.head(self.high(x) - skip.item())


def case_residual_over_the_boundary():
    model = ResidualSplit(RunConfig(), second="cuda:2")
    return model(torch.randn(2, 6)).argmax(-1).tolist()


def case_residual_on_a_single_device():
    model = ResidualSplit(RunConfig(), second="cuda:0")
    return model(torch.randn(2, 6)).argmax(-1).tolist()


def case_skip_as_number_over_the_boundary():
    model = SkipSplit(RunConfig(), second="cuda:3")
    return model(torch.randn(2, 6)).argmax(-1).tolist()


def _dispatch(model, device_map):
    for name, device in device_map.items():
        model.get_submodule(name).to(f"cuda:{device}" if isinstance(device, int) else device)
    return model


class Aligned:
    """Forward hook in front of each module: inputs follow its parameters."""

    def __call__(self, module, args):
        device = next(module.parameters()).device
        return tuple(each.to(device) if torch.is_tensor(each) else each for each in args)


class Stack(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = nn.Embedding(10, config.width)
        self.blocks = nn.ModuleList(Block(config.width) for _ in range(3))
        self.head = nn.Linear(config.width, 10, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def case_device_map_with_aligned_inputs():
    config = RunConfig(device_map={"embed": 0, "blocks.0": 0, "blocks.1": 1, "blocks.2": 2, "head": 2})
    model = _dispatch(Stack(config), config.device_map)
    handles = [module.register_forward_pre_hook(Aligned()) for module in (*model.blocks, model.embed, model.head)]
    out = model(torch.tensor([[1, 2, 3]]))
    for handle in handles:
        handle.remove()
    return out.device.index, out.softmax(-1).detach().cpu().numpy()


class ManualStack(Stack):
    """Moves between blocks, as the map says."""

    def __init__(self, config):
        super().__init__(config)
        self.map = config.device_map

    def forward(self, ids):
        x = self.embed(ids.to(f"cuda:{self.map['embed']}"))
        for number, block in enumerate(self.blocks):
            x = block(x.to(f"cuda:{self.map[f'blocks.{number}']}"))
        return self.head(x)  # raises


def case_device_map_last_block_elsewhere():
    config = RunConfig(device_map={"embed": 0, "blocks.0": 0, "blocks.1": 1, "blocks.2": 2, "head": 0})
    model = _dispatch(ManualStack(config), config.device_map)
    return model(torch.tensor([[1, 2, 3]])).shape


def case_device_map_last_block_with_head():
    config = RunConfig(device_map={"embed": 0, "blocks.0": 0, "blocks.1": 1, "blocks.2": 2, "head": 2})
    model = _dispatch(ManualStack(config), config.device_map)
    return model(torch.tensor([[1, 2, 3]])).shape


class BaseHead(nn.Module):
    temperature = torch.tensor(0.7)
    prior = torch.tensor([0.2, 0.3, 0.5])

    def __init__(self, config):
        super().__init__()
        self.project = nn.Linear(config.width, config.classes)

    def forward(self, x):
        return self.adjust(self.project(x) / self.temperature)

    def adjust(self, logits):
        return logits


class PriorHead(BaseHead):
    def adjust(self, logits):
        return logits + self.prior.log()  # raises


class CastPriorHead(BaseHead):
    def adjust(self, logits):
        return logits + self.prior.to(logits).log()


def _score(head_type, config):
    head = head_type(config).to(config.device)
    return head(torch.ones(2, config.width, device=config.device)).sum(-1).tolist()


def case_base_head_with_class_attribute_temperature():
    return _score(BaseHead, RunConfig(device="cuda:1"))


def case_prior_head_with_class_attribute():
    return _score(PriorHead, RunConfig(device="cuda:1"))


def case_prior_head_following_its_input():
    return _score(CastPriorHead, RunConfig(device="cuda:1"))


def case_config_replaced_for_evaluation():
    config = RunConfig(device="cuda:1")
    evaluation = replace(config, device="cuda:2")
    model = Block(config.width).to(evaluation.model_device)
    x = torch.randn(1, config.width, device=evaluation.device)
    return model(x).sum().item()


def case_config_replaced_with_model_device():
    config = RunConfig(device="cuda:1")
    evaluation = replace(config, device="cuda:2", model_device=None)
    model = Block(config.width).to(evaluation.model_device)
    x = torch.randn(1, config.width, device=evaluation.device)
    return model(x).sum().item()


def case_enum_of_places():
    place = Place.default()
    model = Block(4).to(place.device)
    x = torch.randn(2, 4).to(place.value)
    out = model(x).to(Place.SIDE.device)
    pooled = out.mean(0) + torch.ones(4, device=Place["SIDE"].value)
    return pooled.to(Place.HOST.device).detach().numpy()


@contextmanager
def _current(index):
    previous = torch.cuda.current_device()
    torch.cuda.set_device(index)
    try:
        yield torch.device("cuda")
    finally:
        torch.cuda.set_device(previous)


def case_current_device_inside_the_context():
    with _current(2) as device:
        weight = torch.ones(3, device=device)
        x = torch.arange(3.0).cuda()
        inside = (weight * x).sum()
    return inside.item(), weight.device.index


def case_current_device_after_the_context():
    with _current(2) as device:
        weight = torch.ones(3, device=device)
    x = torch.arange(3.0).to(device)
    return (weight * x).sum().item()  # raises


def case_nested_devices_on_a_stack():
    kept = []
    with ExitStack() as stack:
        for index in range(3):
            stack.enter_context(torch.cuda.device(index))
            kept.append(torch.full((2,), float(index), device="cuda"))
        total = torch.zeros(2).cuda()
        for each in kept:
            total += each.to(total.device)
    return total.tolist(), torch.cuda.current_device()


@contextmanager
def _offloaded(module, device):
    module.to(device)
    try:
        yield module
    finally:
        module.to("cpu")


def case_borrowed_module_used_inside():
    encoder = Block(4)
    features = []
    for chunk in torch.randn(6, 4).split(2):
        with _offloaded(encoder, "cuda:3") as borrowed, torch.no_grad():
            features.append(borrowed(chunk.to("cuda:3")).cpu())
    return encoder(torch.cat(features)).detach().numpy()


def case_borrowed_module_used_afterwards():
    encoder = Block(4)
    chunk = torch.randn(2, 4).to("cuda:3")
    with _offloaded(encoder, chunk.device) as borrowed, torch.no_grad():
        first = borrowed(chunk)
    second = borrowed.up(first)  # raises
    return second.cpu()


class Experts(nn.Module):
    """Top one routing, experts spread round robin."""

    def __init__(self, width, count, devices):
        super().__init__()
        self.devices = [devices[i % len(devices)] for i in range(count)]
        self.gate = nn.Linear(width, count).to(devices[0])
        self.experts = nn.ModuleList(nn.Linear(width, width).to(device) for device in self.devices)

    def forward(self, x):
        choice = self.gate(x).argmax(-1)
        out = torch.zeros_like(x)
        for number, (expert, device) in enumerate(zip(self.experts, self.devices)):
            rows = (choice == number).nonzero(as_tuple=True)[0]
            out[rows] = self.collect(expert(x[rows].to(device)), x)
        return out

    def collect(self, part, x):
        return part.to(x.device)


class ScatterExperts(Experts):
    def forward(self, x):
        choice = self.gate(x).argmax(-1)
        out = torch.zeros_like(x)
        for number in range(len(self.experts)):
            rows = torch.where(choice % len(self.experts) == number)[0]
            part = self.experts[number](x.index_select(0, rows).to(self.devices[number]))
            out.index_add_(0, rows, part)  # raises
        return out


def case_experts_collected():
    experts = Experts(4, 4, ["cuda:0", "cuda:1", "cuda:2"])
    return experts(torch.randn(8, 4, device="cuda:0")).detach().cpu().numpy()


def case_experts_added_in_place():
    experts = ScatterExperts(4, 4, ["cuda:0", "cuda:1", "cuda:2"])
    return experts(torch.randn(8, 4, device="cuda:0")).detach().cpu().numpy()


class PlainList(nn.Module):
    def __init__(self, width, listed):
        super().__init__()
        self.layers = listed([nn.Linear(width, width) for _ in range(2)])
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(width)) for _ in range(2)])

    def forward(self, x):
        for layer, scale in zip(self.layers, self.scales):
            x = layer(x) * scale  # raises
        return x


def case_layers_in_a_module_list():
    return PlainList(3, nn.ModuleList).to("cuda")(torch.ones(1, 3, device="cuda")).tolist()


def case_layers_in_a_python_list():
    return PlainList(3, list).to("cuda")(torch.ones(1, 3, device="cuda")).tolist()


def case_copy_then_saved_and_loaded_for_another_gpu():
    source = Block(4).to("cuda:1")
    twin = copy.deepcopy(source).to("cuda:2")
    stream = io.BytesIO()
    torch.save(source.state_dict(), stream)
    stream.seek(0)
    state = torch.load(stream, map_location={"cuda:1": "cuda:3"})
    twin.load_state_dict(state)
    same = torch.equal(twin.up.weight.to("cuda:3"), state["up.weight"])
    return same, twin(torch.zeros(1, 4, device="cuda:2")).sum().item()


def case_loaded_state_compared_with_original():
    source = Block(4).to("cuda:1")
    stream = io.BytesIO()
    torch.save({"weights": source.state_dict()}, stream)
    stream.seek(0)
    state = torch.load(stream, map_location=lambda storage, location: storage)["weights"]
    drift = 0.0
    for name, value in source.state_dict().items():
        drift += (value - state[name]).abs().max().item()  # raises
    return drift
