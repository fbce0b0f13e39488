"""Train a tiny character model, optionally with adapters, then talk to it.

    python run.py --steps 3 --decode beam
"""
import os

import torch

from lm import config as C
from lm.adapters import inject_lora, lora_parameters, merge_lora
from lm.data import CharCorpus, batches
from lm.decode import DECODERS
from lm.model import GPT
from lm.optim import cosine_lr, make_optimizer


def pick_device(cfg: C.RunConfig) -> torch.device:
    if cfg.device:
        return torch.device(cfg.device)
    if os.environ.get("NANO_FORCE_CPU", "0") == "1":
        return torch.device("cpu")
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def summarize(model, corpus):
    ids = corpus.encode("hello")[None]
    with torch.no_grad():
        logits, _ = model(ids)
    n = sum(p.numel() for p in model.parameters())
    print(f"parameters: {n}, logits {tuple(logits.shape)}")


def estimate_loss(model, corpus, cfg, device):
    model.eval()
    losses = torch.zeros(cfg.eval_iters)
    with torch.no_grad():
        for k, (x, y) in zip(range(cfg.eval_iters), batches(corpus, cfg, "val")):
            _, loss = model(x.to(device), y.to(device))
            losses[k] = loss
    model.train()
    return losses.mean()


def main(cfg: C.RunConfig):
    torch.manual_seed(cfg.seed)
    device = pick_device(cfg)

    corpus = CharCorpus()
    model = GPT(cfg.model_config(corpus.vocab_size))
    if cfg.summary:
        summarize(model, corpus)

    if cfg.lora == "early":
        inject_lora(model, rank=cfg.lora_rank)
    model.to(device)
    if cfg.lora == "late":
        inject_lora(model, rank=cfg.lora_rank)

    params = lora_parameters(model) if cfg.lora != "off" else list(model.parameters())
    optimizer = make_optimizer(params, cfg)
    best = torch.tensor(float("inf"))
    running = torch.zeros((), device=device)
    for step, (x, y) in enumerate(batches(corpus, cfg, "train")):
        if step >= cfg.steps:
            break
        for group in optimizer.param_groups:
            group["lr"] = cosine_lr(step, cfg)
        _, loss = model(x.to(device, non_blocking=True), y.to(device, non_blocking=True))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()
        running += loss.detach()
        best = torch.minimum(best, loss.detach().cpu())
    print(f"train {running.item() / max(cfg.steps, 1):.3f} best {best:.3f} val {estimate_loss(model, corpus, cfg, device):.3f}")

    if cfg.lora != "off" and cfg.merge:
        merge_lora(model)
    model.eval()
    prompt = corpus.encode(cfg.prompt)[None].to(device)
    out = DECODERS[cfg.decode](model, prompt, cfg)
    print(corpus.decode(out[0]))


if __name__ == "__main__":
    main(C.parse())
