import argparse
import math
import os
import tempfile
from itertools import islice

import torch
import torch.nn.functional as F

from generate import beam, sample
from lm import LM, LMConfig
from lora import adapter_state, inject, merge_all


def token_stream(cfg, length, batch, seed=0):
    gen = torch.Generator().manual_seed(seed)
    while True:
        start = torch.randint(cfg.vocab, (batch, 1), generator=gen)
        stride = torch.randint(1, 4, (batch, 1), generator=gen)
        yield (start + stride * torch.arange(length + 1)) % cfg.vocab


def pretrain(model, steps):
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for tokens in islice(token_stream(model.cfg, 12, 4), steps):
        yield run_step(model, opt, tokens.to(model.device))


def run_step(model, opt, tokens):
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    return loss.item()


def finetune(model, steps, lr=1e-2, warmup=2):
    params = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.AdamW(params, lr=lr)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min((s + 1) / warmup, math.exp(-s / steps)))
    losses = []
    for tokens in islice(token_stream(model.cfg, 12, 4, seed=9), steps):
        losses.append(run_step(model, opt, tokens.to(model.device)))
        sched.step()
    return losses


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument('--inject', choices=['before', 'after', 'never'], default='before')
    parser.add_argument('--decode', choices=['sample', 'beam'], default='sample')
    parser.add_argument('--static-cache', action='store_true')
    parser.add_argument('--merge', action='store_true')
    parser.add_argument('--untied', action='store_true')
    parser.add_argument('--device', default=None)
    args = parser.parse_args(argv)
    torch.manual_seed(0)
    device = args.device or ('cuda' if torch.cuda.is_available() else 'cpu')
    targets = {'q_proj', 'v_proj', 'up_proj'}

    model = LM(LMConfig(tied=not args.untied))
    if args.inject == 'before':
        model = inject(model, targets)
    model.to(device)
    print('pretraining', ' '.join('%.3f' % loss for loss in pretrain(model, 3)))
    if args.inject == 'after':
        model = inject(model, targets)
    print('tuning', ' '.join('%.3f' % loss for loss in finetune(model, 3)))

    path = os.path.join(tempfile.mkdtemp(), 'adapter.pt')
    torch.save(adapter_state(model), path)
    missing = model.load_state_dict(torch.load(path), strict=False)
    print('unexpected', missing.unexpected_keys)
    if args.merge:
        model = merge_all(model)
    model.eval()
    prompt = torch.tensor([[1, 2, 3, 4]])
    if args.decode == 'beam':
        out = beam(model, prompt, 5)
    else:
        out = sample(model, prompt, 5, static=args.static_cache)
    print(out[0].tolist())


if __name__ == '__main__':
    main()
