# clean
"""CTC training with EMA weights; resumes by itself from EXP_DIR/last.pt, alone or under torchrun."""
import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from ema import ModelEMA
from speech import CTCModel, Utterances, collate


def setup():
    if "LOCAL_RANK" in os.environ:
        local = int(os.environ["LOCAL_RANK"])
        torch.cuda.set_device(local)
        dist.init_process_group("nccl")
        return local, dist.get_rank(), dist.get_world_size()
    return 0, 0, 1


def reduce_mean(value, weight, device):
    t = torch.tensor([value * weight, weight], dtype=torch.float64, device=device)
    if dist.is_initialized():
        dist.all_reduce(t)
    return (t[0] / t[1]).item()


def save(path, **parts):
    tmp = path.with_suffix(".tmp")
    torch.save({k: v.state_dict() if hasattr(v, "state_dict") else v for k, v in parts.items()}, tmp)
    tmp.rename(path)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--exp-dir", type=Path, required=True)
    ap.add_argument("--epochs", type=int, default=1)
    args = ap.parse_args()
    local, rank, world = setup()
    device = torch.device("cuda", local)
    args.exp_dir.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)

    model = CTCModel()
    model.to(device)
    ema = ModelEMA(model, decay=.9)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    start, last = 0, args.exp_dir / "last.pt"
    if last.exists():
        ck = torch.load(last, map_location="cpu")
        model.load_state_dict(ck["model"])
        opt.load_state_dict(ck["opt"])
        ema.load_state_dict(ck["ema"])
        ema.to(device)
        start = ck["epoch"] + 1
    if dist.is_initialized():
        dist.barrier()
    net = DDP(model, device_ids=[local]) if world > 1 else model
    ctc = nn.CTCLoss(zero_infinity=True)
    for epoch in range(start, args.epochs):
        ds = Utterances(8, seed=epoch * world + rank)
        net.train()
        for batch in DataLoader(ds, batch_size=4, collate_fn=collate):
            feats = batch["feats"].to(device)
            frames = batch["frames"]                       # stays on the host for ctc
            logp = net(feats, frames)
            loss = ctc(logp.transpose(0, 1), batch["targets"], frames, batch["target_lens"])
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.)
            opt.step()
            ema.update(model)
        val = evaluate(ema.module, Utterances(4, seed=99), device)
        val = reduce_mean(val, len(ds), device)
        if rank == 0:
            save(last, model=model, opt=opt, ema=ema, epoch=epoch)
            print(f"epoch {epoch}: loss {loss.item():.3f}, val {val:.3f}")
    if dist.is_initialized():
        dist.destroy_process_group()


@torch.no_grad()
def evaluate(net, ds, device):
    was = net.training
    net.eval()
    errors = total = 0
    for b in DataLoader(ds, batch_size=2, collate_fn=collate):
        out = net(b["feats"].to(device), b["frames"]).argmax(-1).cpu()
        hyps = [[int(s) for s in torch.unique_consecutive(o[:n]) if s != 0] for o, n in zip(out, b["frames"])]
        at = 0
        for h, n in zip(hyps, b["target_lens"].tolist()):
            ref = b["targets"][at:at + n].tolist()
            at += n
            errors += abs(len(h) - len(ref)) + sum(x != y for x, y in zip(h, ref))
            total += n
    net.train(was)
    return errors / total


if __name__ == "__main__":
    main()
