"""Single-stage detector on coloured rectangles."""
import argparse
from functools import partial

import torch
from torch.utils.data import DataLoader

from det.dataset import Rectangles, collate
from det.detector import Detector
from tools.engine import Engine
from tools.hooks import CheckpointHook, EvalHook, LRHook, ProfileHook, WarmStartHook


def get_args():
    ap = argparse.ArgumentParser()
    ap.add_argument("--head", choices=("anchor", "point"), default="anchor")
    ap.add_argument("--nms", choices=("hard", "soft", "class", "none"), default="hard")
    ap.add_argument("--box-loss", choices=("l1", "giou"), default="l1")
    ap.add_argument("--coder", choices=("plain", "scaled"), default="plain")
    ap.add_argument("--alpha", choices=("scalar", "classwise"), default="scalar")
    ap.add_argument("--iters", type=int, default=3)
    ap.add_argument("--batch", type=int, default=2)
    ap.add_argument("--eval-every", type=int, default=3)
    ap.add_argument("--val-loss", action="store_true")
    ap.add_argument("--vis", action="store_true")
    ap.add_argument("--warm-start", action="store_true")
    ap.add_argument("--gpu", type=int, default=0)
    ap.add_argument("--cpu", action="store_true")
    return ap.parse_args()


def main():
    args = get_args()
    torch.manual_seed(0)
    device = torch.device("cpu") if args.cpu else torch.device(f"cuda:{args.gpu}")
    model = Detector(classes=3, head=args.head, nms=args.nms, box_loss=args.box_loss,
                     coder=args.coder, alpha=args.alpha).to(device)
    make_loader = partial(DataLoader, batch_size=args.batch, collate_fn=collate)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    engine = Engine(model, optimizer, make_loader(Rectangles(8, seed=1), shuffle=True), device)

    hooks = [LRHook(warmup=2), ProfileHook(), CheckpointHook("model.pth", every=2)]
    if args.warm_start:
        hooks.append(WarmStartHook("model.pth", at=2))
    hooks.append(EvalHook(make_loader(Rectangles(4, seed=2)), every=args.eval_every, loss=args.val_loss, vis=args.vis))
    for hook in hooks:
        engine.register(hook)
    engine.run(args.iters)


if __name__ == "__main__":
    main()
