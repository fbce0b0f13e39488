import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4).to("cuda:0")
        self.b = nn.Linear(4, 2).to("cuda:1")

    def forward(self, x):
        x = self.a(x.to("cuda:0")).relu()
        return self.b(x.to("cuda:1"))


class Bad(Net):
    def forward(self, x):
        x = self.a(x.to("cuda:0")).relu()
        return self.b(x)  # raises


def case_ok():
    net = Net()
    out = net(torch.randn(3, 4))
    return F.cross_entropy(out, torch.zeros(3, dtype=torch.long, device="cuda:1"))


def case_bad_forward():
    return Bad()(torch.randn(3, 4))


def case_labels_first():
    net = Net()
    y = torch.zeros(3, dtype=torch.long).to("cuda:0")
    return F.cross_entropy(net(torch.randn(3, 4)), y)  # raises


def case_sum_of_norms():
    net = Net()
    total = torch.zeros((), device="cuda:0")
    net(torch.randn(3, 4)).sum().backward()
    for p in net.parameters():
        total = total + p.grad.norm()  # raises
    return total


def case_sum_of_norms_python():
    net = Net()
    net(torch.randn(3, 4)).sum().backward()
    return sum(p.grad.norm() for p in net.parameters())  # raises


def case_sum_of_norms_item():
    net = Net()
    net(torch.randn(3, 4)).sum().backward()
    return sum(p.grad.norm().item() for p in net.parameters())


def case_stack_norms():
    net = Net()
    net(torch.randn(3, 4)).sum().backward()
    return torch.stack([p.grad.norm() for p in net.parameters()]).norm()  # raises


def case_stack_norms_moved():
    net = Net()
    net(torch.randn(3, 4)).sum().backward()
    return torch.stack([p.grad.norm().to("cuda:0") for p in net.parameters()]).norm()


def case_own_momentum_first_device():
    net = Net()
    dev = next(net.parameters()).device
    bufs = [torch.zeros_like(p, device=dev) for p in net.parameters()]
    net(torch.randn(3, 4)).sum().backward()
    with torch.no_grad():
        for p, b in zip(net.parameters(), bufs):
            b.mul_(0.9).add_(p.grad)  # raises


def case_own_momentum_like():
    net = Net()
    bufs = [torch.zeros_like(p) for p in net.parameters()]
    net(torch.randn(3, 4)).sum().backward()
    with torch.no_grad():
        for p, b in zip(net.parameters(), bufs):
            b.mul_(0.9).add_(p.grad)
            p.sub_(b)


def case_ema_dict_one_device():
    net = Net()
    shadow = {n: p.detach().clone().to("cuda:0") for n, p in net.named_parameters()}
    with torch.no_grad():
        for n, p in net.named_parameters():
            shadow[n].mul_(0.9).add_(p, alpha=0.1)  # raises


def case_ema_dict_own():
    net = Net()
    shadow = {n: p.detach().clone() for n, p in net.named_parameters()}
    with torch.no_grad():
        for n, p in net.named_parameters():
            shadow[n].mul_(0.9).add_(p, alpha=0.1)


def case_copy_params():
    net = Net()
    other = Net().to("cuda:0")
    with torch.no_grad():
        for p, q in zip(net.parameters(), other.parameters()):
            p.copy_(q)


def case_lerp_params():
    net = Net()
    other = Net().to("cuda:0")
    with torch.no_grad():
        for p, q in zip(net.parameters(), other.parameters()):
            p.lerp_(q, 0.1)  # raises


def case_reg():
    net = Net()
    out = net(torch.randn(3, 4))
    loss = out.sum()
    for p in net.parameters():
        loss = loss + p.pow(2).sum()  # raises
    return loss


def case_flat():
    net = Net()
    return torch.cat([p.flatten() for p in net.parameters()])  # raises


def case_vector():
    net = Net()
    return torch.nn.utils.parameters_to_vector(net.parameters())  # raises


def case_delta():
    net = Net()
    delta = torch.zeros(2, 4, device="cuda:0")
    with torch.no_grad():
        net.b.weight += delta  # raises


def case_delta_ok():
    net = Net()
    delta = torch.zeros(2, 4, device="cuda:0")
    with torch.no_grad():
        net.b.weight += delta.to(net.b.weight.device)


class Stages(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.stages = nn.ModuleList()
        for i in range(n):
            self.stages.append(nn.Linear(4, 4).to(f"cuda:{i}"))

    def forward(self, x):
        for s in self.stages:
            x = s(x.to(s.weight.device))
        return x

    def last(self, x):
        for i, s in enumerate(self.stages):
            x = s(x.to("cuda:0"))  # raises
        return x


def case_stages():
    return Stages()(torch.randn(2, 4))


def case_stages_bad():
    return Stages().last(torch.randn(2, 4))


def case_stages_target():
    out = Stages()(torch.randn(2, 4))
    return F.mse_loss(out, torch.zeros(2, 4, device="cuda:0"))  # raises


def case_stages_target_ok():
    out = Stages()(torch.randn(2, 4))
    return F.mse_loss(out, torch.zeros(2, 4, device="cuda:2"))


def case_stage_list_device():
    devices = ["cuda:0", "cuda:1"]
    layers = [nn.Linear(4, 4).to(d) for d in devices]
    x = torch.randn(2, 4, device=devices[0])
    for layer, d in zip(layers, devices):
        x = layer(x.to(d))
    return x + torch.ones(4, device=devices[0])  # raises


def case_pairs():
    layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))
    for i, layer in enumerate(layers):
        layer.to(torch.device("cuda", i // 2))
    x = torch.randn(2, 4, device="cuda:0")
    for layer in layers:
        x = layer(x)  # raises
    return x


def case_skip():
    layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))
    for i, layer in enumerate(layers):
        layer.to(torch.device("cuda", i // 2))
    x = h = torch.randn(2, 4, device="cuda:0")
    for i, layer in enumerate(layers):
        h = layer(h.to(f"cuda:{i // 2}"))
    return x + h  # raises


def case_clip():
    net = Net()
    net(torch.randn(3, 4)).sum().backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)


def case_opt_state():
    net = Net()
    opt = torch.optim.Adam(net.parameters())
    net(torch.randn(3, 4)).sum().backward()
    opt.step()
    state = {k: v["exp_avg"].to("cuda:0") for k, v in opt.state.items()}
    return [state[p] + p.grad for p in net.parameters()]  # raises


def case_average():
    nets = [nn.Linear(2, 2).to(f"cuda:{i}") for i in range(3)]
    ws = [n.weight.detach() for n in nets]
    return sum(ws) / 3  # raises


def case_average_ok():
    nets = [nn.Linear(2, 2).to(f"cuda:{i}") for i in range(3)]
    ws = [n.weight.detach().to("cuda:0") for n in nets]
    return sum(ws) / 3


def case_grads_to_master():
    nets = [nn.Linear(2, 2).to(f"cuda:{i}") for i in range(2)]
    for i, n in enumerate(nets):
        n(torch.ones(1, 2, device=f"cuda:{i}")).sum().backward()
    for ps in zip(*[n.parameters() for n in nets]):
        ps[0].grad.add_(ps[1].grad)  # raises


def case_grads_to_master_ok():
    nets = [nn.Linear(2, 2).to(f"cuda:{i}") for i in range(2)]
    for i, n in enumerate(nets):
        n(torch.ones(1, 2, device=f"cuda:{i}")).sum().backward()
    for ps in zip(*[n.parameters() for n in nets]):
        ps[0].grad.add_(ps[1].grad.to(ps[0].device))
