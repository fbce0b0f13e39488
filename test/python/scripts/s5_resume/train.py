import argparse
import os
import tempfile

import torch
import torch.nn.functional as F

from ema import EMAModel
from model import Denoiser


def parse_args(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--output_dir", type=str, default=None)
    parser.add_argument("--max_train_steps", type=int, default=2)
    parser.add_argument("--resume_from_checkpoint", type=str, default=None)
    parser.add_argument("--use_ema", action="store_true")
    return parser.parse_args(argv)


def save_state(path, model, optimizer, ema):
    os.makedirs(path, exist_ok=True)
    torch.save(model.state_dict(), os.path.join(path, "model.pt"))
    torch.save(optimizer.state_dict(), os.path.join(path, "optimizer.pt"))
    torch.save(ema.state_dict(), os.path.join(path, "ema.pt"))


def load_state(path, model, optimizer, ema):
    model.load_state_dict(torch.load(os.path.join(path, "model.pt"), map_location="cpu"))
    optimizer.load_state_dict(torch.load(os.path.join(path, "optimizer.pt"), map_location="cpu"))
    ema.load_state_dict(torch.load(os.path.join(path, "ema.pt"), map_location="cpu"))


def train(args):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Denoiser()
    model.to(device)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    ema = EMAModel(model.parameters())
    if args.resume_from_checkpoint:
        load_state(args.resume_from_checkpoint, model, optimizer, ema)
    for _ in range(args.max_train_steps):
        x = torch.randn(4, 6).to(device)
        noise = torch.randn_like(x)
        t = torch.randint(0, 10, (4,), device=x.device)
        loss = F.mse_loss(model(x + noise, t), noise)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if args.use_ema:
            ema.step(model.parameters())
    path = os.path.join(args.output_dir, "checkpoint")
    save_state(path, model, optimizer, ema)
    return path


def main():
    args = parse_args()
    args.output_dir = args.output_dir or tempfile.mkdtemp()
    args.use_ema = True
    args.resume_from_checkpoint = train(args)
    train(args)


if __name__ == "__main__":
    main()
