# clean
"""Teacher on one GPU, student on another."""
import argparse
import contextlib
from typing import Dict

import torch
import torch.nn.functional as F
from torch import nn

from models import ConvNet, FeatureTap, Projector
from util import AverageDict, infinite, to_device


def build_args():
    ap = argparse.ArgumentParser()
    ap.add_argument("--teacher-device", default="cuda:1")
    ap.add_argument("--student-device", default="cuda:0")
    ap.add_argument("--T", type=float, default=4.)
    ap.add_argument("--steps", type=int, default=2)
    ap.add_argument("--feature-hint", action="store_true")
    return ap.parse_args()


class KD(nn.Module):
    def __init__(self, T, alpha=.7):
        super().__init__()
        self.T = T
        self.register_buffer("alpha", torch.tensor(alpha), persistent=False)

    def forward(self, s, t, y):
        t = t.to(s.device, non_blocking=True)
        soft = F.kl_div(F.log_softmax(s / self.T, 1), F.softmax(t / self.T, 1), reduction="batchmean") * self.T ** 2
        return self.alpha * soft + (1 - self.alpha) * F.cross_entropy(s, y)


def main():
    args = build_args()
    td, sd = torch.device(args.teacher_device), torch.device(args.student_device)
    torch.manual_seed(0)
    teacher = ConvNet(8).to(td).eval().requires_grad_(False)
    student = ConvNet(4)
    student.to(sd)
    kd = KD(args.T)
    hint, taps = None, contextlib.ExitStack()
    params = list(student.parameters())
    if args.feature_hint:
        hint = Projector(4, 8).to(sd)
        params += hint.parameters()
        t_tap, s_tap = (taps.enter_context(FeatureTap(m.features)) for m in (teacher, student))
    opt = torch.optim.SGD(params, lr=.05, momentum=.9, nesterov=True)
    sched = torch.optim.lr_scheduler.MultiStepLR(opt, [2])
    meters = AverageDict()
    data = [{"image": torch.randn(4, 3, 8, 8), "label": torch.randint(0, 5, (4,)), "meta": {"id": torch.arange(4)}} for _ in range(2)]
    with taps:
        for step, batch in zip(range(args.steps), infinite(data)):
            s_batch = to_device(batch, sd)
            with torch.no_grad():
                t_out = teacher(batch["image"].to(td))
            s_out = student(s_batch["image"])
            loss = kd(s_out, t_out, s_batch["label"])
            if hint is not None:
                loss = loss + F.mse_loss(hint(s_tap.value), t_tap.value.to(sd))
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            agree = (t_out.argmax(1).cpu() == s_out.argmax(1).cpu()).float().mean()
            meters.update(loss=loss.detach(), agree=agree)
            wrong = s_batch["meta"]["id"][(s_out.argmax(1) != s_batch["label"])]
            assert wrong.device == sd
    stats: Dict[str, float] = meters.averages()
    print(stats)


if __name__ == "__main__":
    main()
