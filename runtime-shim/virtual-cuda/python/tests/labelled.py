"""Small functions as people write them. One with a comment "raises" fails on that line, on 2 GPUs; the others run."""

import torch
from torch import nn
from torch.nn import functional

from releases import needs


def factory_in_function():
    def mask(x):
        return x + torch.arange(x.shape[0])  # raises

    mask(torch.ones(3, device="cuda"))


def factory_with_device():
    x = torch.ones(3, device="cuda")
    return x + torch.arange(x.shape[0], device=x.device)


def factory_like():
    x = torch.ones(3, device="cuda:1")
    return x + torch.zeros_like(x) + x.new_ones(3)


def scalar_of_the_host():
    return torch.ones(3, device="cuda") * torch.tensor(2.0) + torch.tensor(1)


def scalar_of_another_device():
    return torch.ones(3, device="cuda:0") * torch.tensor(2.0, device="cuda:1")  # raises


def host_in_place_with_scalar_of_device():
    gradient = torch.ones(3)
    gradient.mul_(torch.tensor(2.0, device="cuda"))  # raises


def forgotten_target():
    logits = nn.Linear(4, 3).cuda()(torch.ones(2, 4, device="cuda"))
    return functional.cross_entropy(logits, torch.tensor([0, 1]))  # raises


def target_on_the_device():
    logits = nn.Linear(4, 3).cuda()(torch.ones(2, 4, device="cuda"))
    return functional.cross_entropy(logits, torch.tensor([0, 1], device="cuda"))


def forgotten_input():
    model = nn.Linear(4, 3).cuda()
    return model(torch.ones(2, 4))  # raises


def discarded_move():
    x = torch.ones(4)
    x.to("cuda")
    return nn.Linear(4, 3).cuda()(x)  # raises


def module_moves_in_place():
    model = nn.Linear(4, 3)
    model.to("cuda")
    return model(torch.ones(4, device="cuda"))


def plain_attribute_stays():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.ones(3)

        def forward(self, x):
            return x * self.scale  # raises

    return Model().cuda()(torch.ones(3, device="cuda"))


def buffer_moves():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.ones(3), persistent=False)

        def forward(self, x):
            return x * self.scale

    return Model().cuda()(torch.ones(3, device="cuda"))


def list_of_modules_stays():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(3, 3)]

        def forward(self, x):
            return self.layers[0](x)  # raises

    return Model().cuda()(torch.ones(3, device="cuda"))


def alias_of_a_buffer_goes_stale():
    model = nn.BatchNorm1d(3)
    alias = [model.running_mean]
    model.cuda()
    return alias[0] + torch.ones(3, device="cuda")  # raises


def alias_of_a_parameter_lives():
    model = nn.Linear(3, 3)
    alias = [model.weight]
    model.cuda()
    return alias[0] + torch.ones(3, device="cuda")


def index_of_the_host():
    return torch.ones(3, device="cuda")[torch.tensor([0, 1])]


def index_of_the_device_into_the_host():
    return torch.ones(3)[torch.tensor([0, 1], device="cuda")]  # raises


def mask_of_the_device_into_the_host():
    values = torch.zeros(3)
    values[torch.tensor([True, False, True], device="cuda")] = 1


def value_of_the_host_by_mask():
    values = torch.zeros(3, device="cuda")
    values[values < 1] = torch.ones(3)  # raises


def value_of_the_host_by_slice():
    values = torch.zeros(3, device="cuda")
    values[:2] = torch.ones(2)
    return values


def scatter_with_index_of_the_host():
    values = torch.zeros(3, device="cuda")
    values.scatter_(0, torch.tensor([1]), torch.ones(1, device="cuda"))  # raises


def embedding_with_tokens_of_the_host():
    return nn.Embedding(5, 2).cuda()(torch.tensor([1, 2]))  # raises


def concatenation_over_devices():
    return torch.cat([torch.ones(2, device="cuda:0"), torch.ones(2, device="cuda:1")])  # raises


def stack_of_a_list():
    parts = [torch.ones(2, device="cuda"), torch.ones(2)]
    return torch.stack(parts)  # raises


def where_with_the_host():
    x = torch.ones(3, device="cuda")
    return torch.where(x > 0, x, torch.zeros(3))  # raises


def where_with_a_number():
    x = torch.ones(3, device="cuda")
    return torch.where(x > 0, x, 0.0)


def numpy_of_the_device():
    return torch.ones(3, device="cuda").numpy()  # raises


def numpy_of_what_needs_gradients():
    return torch.ones(3, device="cuda", requires_grad=True).detach().cpu().tolist()


def bare_cuda_is_the_current_device():
    with torch.cuda.device(1):
        model = nn.Linear(2, 2).cuda()
    return model(torch.ones(2).cuda())  # raises


def type_as_keeps_the_device():
    with torch.cuda.device(1):
        x = torch.ones(2, device="cuda")
    return x + torch.ones(2).type_as(x)


def legacy_constructor_is_the_current_device():
    x = torch.ones(2, device="cuda:1")
    return x + torch.cuda.FloatTensor([1, 2])  # raises


def rank_over_the_count():
    return torch.ones(2).to("cuda:2")  # raises


def split_model():
    first, second = nn.Linear(3, 3).to("cuda:0"), nn.Linear(3, 3).to("cuda:1")
    return second(first(torch.ones(3, device="cuda:0")))  # raises


def split_model_with_move():
    first, second = nn.Linear(3, 3).to("cuda:0"), nn.Linear(3, 3).to("cuda:1")
    return second(first(torch.ones(3, device="cuda:0")).to("cuda:1"))


def loss_over_devices():
    model = nn.Linear(3, 3).to("cuda:1")
    labels = torch.tensor([1], device="cuda:0")
    return functional.cross_entropy(model(torch.ones(1, 3, device="cuda:1")), labels)  # raises


def hook_adds_what_is_elsewhere():
    delta = torch.ones(3, device="cuda:0")
    model = nn.Linear(3, 3).to("cuda:1")
    model.register_forward_hook(lambda module, inputs, output: output + delta)  # raises
    return model(torch.ones(3, device="cuda:1"))


def optimizer_before_the_move():
    model = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2)).sum().backward()
    optimizer.step()
    model.cuda()
    optimizer.zero_grad()
    model(torch.ones(2, device="cuda")).sum().backward()
    optimizer.step()  # raises


def optimizer_without_state_before_the_move():
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.cuda()
    model(torch.ones(2, device="cuda")).sum().backward()
    optimizer.step()


def generator_of_the_host():
    return torch.randn(3, device="cuda", generator=torch.Generator())  # raises


def generator_of_the_device():
    return torch.randn(3, device="cuda", generator=torch.Generator(device="cuda"))


def permutation_with_generator_of_the_device():
    return torch.randperm(3, generator=torch.Generator(device="cuda"))  # raises


def metric_kept_on_the_host():
    best = torch.tensor(float("inf"))
    return torch.lt(torch.tensor(1.0, device="cuda"), best)


def metric_compared_over_devices():
    best = torch.full((1,), 2.0)
    return torch.lt(torch.ones(1, device="cuda"), best)  # raises


def average_of_weights():
    ema, model = nn.Linear(2, 2), nn.Linear(2, 2).cuda()
    with torch.no_grad():
        for old, new in zip(ema.parameters(), model.parameters()):
            old.mul_(0.9).add_(new, alpha=0.1)  # raises


def copy_between_devices():
    ema, model = nn.Linear(2, 2), nn.Linear(2, 2).cuda()
    with torch.no_grad():
        for old, new in zip(ema.parameters(), model.parameters()):
            old.copy_(new)


def cache_of_another_call():
    cache = {}

    def positions(x):
        if len(x) not in cache:
            cache[len(x)] = torch.arange(len(x), device=x.device)
        return x + cache[len(x)]  # raises

    positions(torch.ones(3, device="cuda:0"))
    positions(torch.ones(3, device="cuda:1"))


def convolution_of_the_host():
    return nn.Conv2d(1, 1, 3).cuda()(torch.ones(1, 1, 4, 4))  # raises


def lstm_state_of_the_host():
    model = nn.LSTM(2, 3).cuda()
    return model(torch.ones(1, 1, 2, device="cuda"), (torch.zeros(1, 1, 3), torch.zeros(1, 1, 3)))  # raises


def attention_mask_of_the_host():
    query = torch.ones(1, 1, 2, 4, device="cuda")
    return functional.scaled_dot_product_attention(query, query, query, attn_mask=torch.zeros(2, 2))  # raises


def lengths_of_the_device():
    inputs, lengths = torch.ones(3, 2, 1, device="cuda"), torch.tensor([3, 2], device="cuda")
    return nn.utils.rnn.pack_padded_sequence(inputs, lengths)  # raises


def gradient_of_two_devices():
    x = torch.ones(2, device="cuda", requires_grad=True)
    (2 * x).backward(torch.ones(2))  # raises


def scalar_gradient_of_the_host():
    torch.ones(2, device="cuda", requires_grad=True).sum().backward(torch.tensor(1.0))


def data_of_a_parameter():
    parameter = nn.Parameter(torch.ones(2, device="cuda"))
    parameter.data = parameter.data.cpu()
    return parameter + torch.ones(2)


def quantiles():
    return torch.quantile(torch.ones(4, device="cuda"), torch.tensor([0.5]))  # raises


def einsum_over_devices():
    return torch.einsum("ij,jk->ik", torch.ones(2, 2, device="cuda:0"), torch.ones(2, 2, device="cuda:1"))  # raises


def comparison_with_equal():
    return torch.equal(torch.ones(2, device="cuda"), torch.ones(2))  # raises


def pinned_is_of_the_host():
    return torch.ones(2, device="cuda") + torch.ones(2).pin_memory()  # raises


def pinning_the_device():
    return torch.ones(2, device="cuda").pin_memory()  # raises


@needs("set_default_device")
def default_device():
    torch.set_default_device("cuda:1")
    try:
        return nn.Linear(2, 2)(torch.ones(2))
    finally:
        torch.set_default_device(None)
