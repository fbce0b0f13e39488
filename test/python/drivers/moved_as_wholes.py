import numpy as np
import torch

import moved_as_wholes as M

GPU = "cuda:1"


def batch():
    return {"image": torch.ones(4, 3), "mask": torch.ones(4, 3)}


def splats():
    return M.Splats(4).to(GPU)


def model():
    return M.Model(5).to(GPU)


def ids():
    return torch.arange(3, device=GPU)


def teacher():
    images = {"count": torch.tensor(2.0), "pixels": torch.ones(2, 3)}
    return M.Teacher(lambda: torch.nn.Linear(3, 3)).to("cuda")(images, 0.1)


CALLS = {
    "loss": lambda: splats().loss({"rgb": torch.ones(4, 3, device=GPU)}, batch()),
    "shaded": lambda: splats().shaded(batch()),
    "splats": lambda: splats()(),
    "weighted": lambda: splats().weighted(),
    "model": lambda: model()(ids()),
    "biased": lambda: model().biased(ids()),
    "gray": lambda: M.Gray().to(GPU)(torch.ones(2, 3, device=GPU)),
    "lighter": lambda: M.Gray().to(GPU).lighter(torch.ones(2, 3, device=GPU)),
    "sinusoidal": lambda: M.Sinusoidal(2).to(GPU)(ids()),
    "merged": lambda: M.Reparametrised(3).to(GPU).merged(),
    "wrongly": lambda: M.Reparametrised(3).to(GPU).wrongly(),
    "sharpened": lambda: M.sharpened(torch.ones(3, device=GPU), 0.5),
    "teacher": teacher,
    "softmax": lambda: M.softmax(np.ones(3)),
    "kept": lambda: M.kept([np.ones((2, 3))], [np.ones((2, 3))], 2),
    "metric": lambda: M.Metric().update(torch.ones(2, 3, device=GPU), torch.zeros(2, dtype=torch.long, device=GPU)),
    "overall": lambda: M.Metric.overall([1, 2], [1, 2]),
    "padded": lambda: M.padded(["a", "bc"], 3),
}
