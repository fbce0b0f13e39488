import torch
from vlmodel import *

DEV = torch.device("cuda:0")


def pixels():
    return torch.rand(4, 3, 16, 16, device=DEV)


def ids(n=6):
    return torch.randint(2, 50, (4, n), device=DEV)


def model(labels=None, **kwargs):
    return VLModel(VLConfig(**kwargs)).to(DEV)(pixels(), ids(), labels)


def answers():
    return {"vqa": torch.randint(0, 7, (4,), device=DEV)}


def parallel():
    return ParallelVLModel(VLConfig()).parallelize(["cuda:0", "cuda:1"])


def captioner(**kwargs):
    return Captioner(VLConfig(), **kwargs).to(DEV)


CALLS = {
    "model": lambda: model()["itc"].loss.backward(),
    "ranks": lambda: model()["itc"].ranks(),
    "recall": lambda: model()["itc"].recall(2),
    "tuple": lambda: model()["itc"].to_tuple(),
    "sincos": lambda: model(learned_position=False),
    "text_past": lambda: TextEncoder(VLConfig()).to(DEV)(ids(2), past_length=3),
    "text": lambda: TextEncoder(VLConfig()).to(DEV)(ids()),
    "text_causal": lambda: TextEncoder(VLConfig(), causal=True).to(DEV)(ids()),
    "itm": lambda: model(heads=["itm"]),
    "vqa": lambda: model(answers(), heads=["vqa"]),
    "vqa_weighted": lambda: model(answers(), heads=["vqa"], answer_weights=[1.0] * 7),
    "parallel": lambda: parallel()(pixels(), ids()),
    "similarity": lambda: parallel().similarity(pixels(), ids()),
    "generate": lambda: captioner().generate(pixels()),
    "generate_early": lambda: captioner().generate(pixels(), stop_early=True),
}
