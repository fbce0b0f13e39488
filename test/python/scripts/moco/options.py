import argparse

import torch


def get_options():
    p = argparse.ArgumentParser(description="Momentum contrast of tiny images")
    p.add_argument("--dim", type=int, default=4)
    p.add_argument("--queue", type=int, default=8)
    p.add_argument("--momentum", type=float, default=0.9)
    p.add_argument("--temperature", type=float, default=0.2)
    p.add_argument("--batch-size", type=int, default=4)
    p.add_argument("--epochs", type=int, default=1)
    p.add_argument("--resume", action="store_true", default=True)
    p.add_argument("--device", default=None)
    opt = p.parse_args()
    opt.device = torch.device(opt.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    return opt
