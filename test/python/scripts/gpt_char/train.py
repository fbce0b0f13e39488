import math
import os
import tempfile
from contextlib import nullcontext

import torch

import configurator
from data import CharData
from model import GPT, GPTConfig

config = dict(batch_size=4, block_size=16, max_iters=4, eval_iters=2, learning_rate=1e-3, warmup_iters=1, grad_clip=1.0,
              gradient_accumulation_steps=2, init_from="scratch", device="cuda" if torch.cuda.is_available() else "cpu", dtype="float32")
configurator.apply(config)
device, device_type = config["device"], "cuda" if "cuda" in config["device"] else "cpu"
ctx = nullcontext() if device_type == "cpu" else torch.cuda.amp.autocast(enabled=config["dtype"] == "float16")

torch.manual_seed(1337)
data = CharData()
model = GPT(GPTConfig(block_size=config["block_size"], vocab_size=data.vocab_size))
model.crop_block_size(12)
config["block_size"] = 12
model.to(device)
scaler = torch.cuda.amp.GradScaler(enabled=(config["dtype"] == "float16"))
optimizer = model.configure_optimizers(0.1, config["learning_rate"], (0.9, 0.95), device_type)


def get_batch(split):
    return data.get_batch(split, config["batch_size"], config["block_size"], device)


@torch.no_grad()
def estimate_loss():
    out = {}
    model.eval()
    for split in ["train", "val"]:
        losses = torch.zeros(config["eval_iters"])
        for k in range(config["eval_iters"]):
            X, Y = get_batch(split)
            with ctx:
                _, loss = model(X, Y)
            losses[k] = loss
        out[split] = losses.mean()
    model.train()
    return out


def get_lr(it):
    if it < config["warmup_iters"]:
        return config["learning_rate"] * (it + 1) / config["warmup_iters"]
    ratio = (it - config["warmup_iters"]) / max(1, config["max_iters"] - config["warmup_iters"])
    return 0.5 * (1.0 + math.cos(math.pi * ratio)) * config["learning_rate"]


out_dir = tempfile.mkdtemp()
best_val_loss = torch.tensor(1e9)
X, Y = get_batch("train")
for iter_num in range(config["max_iters"]):
    for group in optimizer.param_groups:
        group["lr"] = get_lr(iter_num)
    if iter_num % 2 == 0:
        losses = estimate_loss()
        if losses["val"] < best_val_loss:
            best_val_loss = losses["val"]
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "best": best_val_loss, "iter": iter_num},
                       os.path.join(out_dir, "ckpt.pt"))
    for micro_step in range(config["gradient_accumulation_steps"]):
        with ctx:
            logits, loss = model(X, Y)
            loss = loss / config["gradient_accumulation_steps"]
        X, Y = get_batch("train")
        scaler.scale(loss).backward()
    if config["grad_clip"] != 0.0:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), config["grad_clip"])
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)

checkpoint = torch.load(os.path.join(out_dir, "ckpt.pt"), map_location=device)
model.load_state_dict(checkpoint["model"])
optimizer.load_state_dict(checkpoint["optimizer"])
start = torch.tensor([data.stoi[c] for c in "to "], dtype=torch.long, device=device)[None, ...]
print(data.decode(model.generate(start, 8, top_k=5)[0].tolist()), checkpoint["best"].item())
