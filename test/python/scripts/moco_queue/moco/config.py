import json

import torch


def load(path, overrides=()):
    """The configuration of the file, with overrides such as model.queue=64."""
    with open(path, encoding="utf-8") as stream:
        config = json.load(stream)
    for each in overrides:
        name, _, value = each.partition("=")
        *parents, last = name.split(".")
        section = config
        for parent in parents:
            section = section[parent]
        if last not in section:
            raise KeyError(name)
        try:
            section[last] = json.loads(value)
        except json.JSONDecodeError:
            section[last] = value
    if config["device"] is None:
        config["device"] = "cuda" if torch.cuda.is_available() else "cpu"
    return config
