"""What a model of the program gives as an output of transformers has parts, by name and by place."""
import torch
from transformers.modeling_outputs import BaseModelOutput


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x):
        hidden = self.layer(x)
        return BaseModelOutput(last_hidden_state=hidden, hidden_states=None, attentions=hidden.cpu())


def encoded():
    return Encoder().cuda()(torch.ones(3, device="cuda"))


def by_name():
    return encoded().last_hidden_state + torch.ones(3)


def by_key():
    return encoded()["last_hidden_state"] + torch.ones(3)


def by_place():
    return encoded()[0] + torch.ones(3)


def behind_none():
    return encoded()[1] + torch.ones(3)
