from collections import OrderedDict
import torch
import torch.nn as nn

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.proj = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x):
        return self.proj(self.fc(x))


class N(nn.Module):
    def __init__(self, n=2):
        super().__init__()
        self.embed = nn.Embedding(4, 2)
        self.blocks = nn.ModuleList(M() for _ in range(n))

    def forward(self, x):
        x = self.embed(x)
        for b in self.blocks:
            x = b(x)
        return x


def case_a():
    m = N()
    m.get_submodule("embed").to("cuda:0")
    return m.embed.weight + torch.ones(2)  # raises


def case_b():
    m = N()
    m.get_submodule("blocks.0").to("cuda:0")
    return m.blocks[0].fc.weight + torch.ones(2)  # raises


def case_b1():
    m = N()
    m.get_submodule("blocks.0.proj").to("cuda:0")
    return m.blocks[0].proj.weight + torch.ones(2)  # raises


def case_b2():
    m = N()
    m.get_submodule("blocks.0.proj").to("cuda:0")
    return m.blocks[0].fc.weight + torch.ones(2)


def case_b3():
    m = N()
    m.get_submodule("blocks.0").to("cuda:0")
    return m.blocks[1].fc.weight + torch.ones(2)


def case_c():
    m = N()
    m.get_submodule("blocks.0").to("cuda:0")
    return m.get_submodule("blocks.0.fc").weight + torch.ones(2)  # raises


def case_d():
    m = N()
    mp = OrderedDict({"embed": "cuda:0"})
    mp.update({f"blocks.{i}": f"cuda:{i % 4}" for i in range(2)})
    for name, device in mp.items():
        m.get_submodule(name).to(device)
    return m.blocks[1].fc.weight + torch.ones(2)  # raises


def case_e():
    m = N()
    mp = {"embed": "cuda:0"}
    mp.update({f"blocks.{i}": f"cuda:{i % 4}" for i in range(2)})
    return torch.ones(2, device=mp["blocks.1"]) + torch.ones(2)  # raises


def case_f():
    m = N()
    mp = {f"blocks.{i}": f"cuda:{i % 4}" for i in range(2)}
    return torch.ones(2, device=mp["blocks.1"]) + torch.ones(2)  # raises


def case_g():
    mp = OrderedDict({"embed": "cuda:0"})
    return torch.ones(2, device=mp["embed"]) + torch.ones(2)  # raises


def case_h():
    m = N().cuda()
    for name, mod in m.named_modules():
        if isinstance(mod, nn.Embedding):
            mod.cpu()
    return m.blocks[0].fc.weight[0] + m.embed(torch.zeros(1, dtype=torch.long))  # raises


def case_i():
    m = N().cuda()
    for name, mod in m.named_modules():
        if name == "embed":
            mod.cpu()
    return m.blocks[0].fc.weight[0] + m.embed(torch.zeros(1, dtype=torch.long))  # raises


def case_j():
    m = N().cuda()
    for name, child in m.named_children():
        if name == "embed":
            child.cpu()
    return m.blocks[0].fc.weight[0] + m.embed(torch.zeros(1, dtype=torch.long))  # raises


def case_k():
    m = N().cuda()
    for name, p in m.named_parameters():
        if "embed" in name:
            p.data = p.data.cpu()
    return m.embed(torch.zeros(1, dtype=torch.long, device="cuda"))  # raises


def case_l():
    m = N().cuda()
    dict(m.named_modules())["embed"].cpu()
    return m.blocks[0].fc.weight[0] + m.embed(torch.zeros(1, dtype=torch.long))  # raises


def case_m():
    m = N()
    m.blocks[0].to("cuda:0")
    m.blocks[1].to("cuda:1")
    ws = {n: p.clone() for n, p in m.named_parameters()}
    return ws["blocks.1.fc.weight"] + torch.ones(2)  # raises


def case_n():
    m = N()
    m.blocks[0].to("cuda:0")
    m.blocks[1].to("cuda:1")
    ws = dict(m.named_parameters())
    return ws["blocks.1.fc.weight"] + torch.ones(2)  # raises


def case_o():
    m = N()
    m.blocks[0].to("cuda:0")
    return m.get_parameter("blocks.0.fc.weight") + torch.ones(2)  # raises


def case_p():
    m = N()
    m.blocks[0].to("cuda:0")
    return m.state_dict()["blocks.0.fc.weight"] + torch.ones(2)  # raises
