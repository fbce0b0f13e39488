# clean
"""
char LM, nanoGPT habits: module level code, config by globals, torchrun or plain python
"""
import os, sys, math
from ast import literal_eval
from contextlib import nullcontext

import numpy as np
import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.distributed import init_process_group, destroy_process_group, all_reduce

from model import GPTConfig, GPT

out_dir = 'out'
init_from = 'scratch'
max_iters = 4
eval_interval = 2
batch_size = 4
block_size = 8
learning_rate = 1e-3
warmup_iters = 2
grad_clip = 1.0
gradient_accumulation_steps = 2
device = 'cuda'
backend = 'nccl'
for arg in sys.argv[1:]:
    key, val = arg[2:].split('=')
    assert key in globals(), key
    try:
        val = literal_eval(val)
    except (SyntaxError, ValueError):
        pass
    globals()[key] = val

ddp = int(os.environ.get('RANK', -1)) != -1
if ddp:
    init_process_group(backend=backend)
    ddp_rank = int(os.environ['RANK'])
    ddp_local_rank = int(os.environ['LOCAL_RANK'])
    device = f'cuda:{ddp_local_rank}'
    torch.cuda.set_device(device)
    master_process = ddp_rank == 0
    seed_offset = ddp_rank
else:
    master_process, seed_offset = True, 0
if master_process:
    os.makedirs(out_dir, exist_ok=True)
torch.manual_seed(1337 + seed_offset)
device_type = 'cuda' if 'cuda' in device else 'cpu'
ctx = nullcontext() if device_type == 'cpu' else torch.autocast(device_type=device_type, dtype=torch.bfloat16, enabled=False)

text = np.frombuffer(b'the quick brown fox jumps over the lazy dog ' * 20, dtype=np.uint8).astype(np.int64) % 64
splits = {'train': text[:600], 'val': text[600:]}


def get_batch(split):
    data = splits[split]
    ix = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([torch.from_numpy(data[i:i + block_size].copy()) for i in ix])
    y = torch.stack([torch.from_numpy(data[i + 1:i + 1 + block_size].copy()) for i in ix])
    if device_type == 'cuda':
        x, y = x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device, non_blocking=True)
    else:
        x, y = x.to(device), y.to(device)
    return x, y


iter_num, best_val_loss = 0, 1e9
if init_from == 'scratch':
    model = GPT(GPTConfig(block_size=block_size))
elif init_from == 'resume':
    checkpoint = torch.load(os.path.join(out_dir, 'ckpt.pt'), map_location=device)
    model = GPT(GPTConfig(**checkpoint['model_args']))
    state_dict = checkpoint['model']
    for k in list(state_dict):
        if k.startswith('_orig_mod.'):
            state_dict[k[len('_orig_mod.'):]] = state_dict.pop(k)
    model.load_state_dict(state_dict)
    iter_num, best_val_loss = checkpoint['iter_num'], checkpoint['best_val_loss']
model.to(device)
scaler = torch.cuda.amp.GradScaler(enabled=False)
optimizer = model.configure_optimizers(0.1, learning_rate, (0.9, 0.95))
if init_from == 'resume':
    optimizer.load_state_dict(checkpoint['optimizer'])
    checkpoint = None
if ddp:
    model = DDP(model, device_ids=[ddp_local_rank])


@torch.no_grad()
def estimate_loss():
    out = {}
    model.eval()
    for split in ['train', 'val']:
        losses = torch.zeros(2)
        for k in range(2):
            X, Y = get_batch(split)
            with ctx:
                logits, loss = model(X, Y)
            losses[k] = loss.item()
        out[split] = losses.mean()
    model.train()
    return out


def get_lr(it):
    return learning_rate * min(1, (it + 1) / warmup_iters) * .5 * (1 + math.cos(math.pi * it / 100))


X, Y = get_batch('train')
raw_model = model.module if ddp else model
while iter_num < max_iters:
    for group in optimizer.param_groups:
        group['lr'] = get_lr(iter_num)
    if iter_num % eval_interval == 0 and master_process:
        losses = estimate_loss()
        if losses['val'] < best_val_loss or init_from == 'resume':
            best_val_loss = losses['val']
            torch.save(dict(model=raw_model.state_dict(), optimizer=optimizer.state_dict(), iter_num=iter_num,
                            model_args=vars(raw_model.config), best_val_loss=best_val_loss), os.path.join(out_dir, 'ckpt.pt'))
    for micro_step in range(gradient_accumulation_steps):
        if ddp:
            model.require_backward_grad_sync = micro_step == gradient_accumulation_steps - 1
        with ctx:
            logits, loss = model(X, Y)
            loss = loss / gradient_accumulation_steps
        X, Y = get_batch('train')
        scaler.scale(loss).backward()
    if grad_clip:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    if ddp:
        lossf = loss.detach().clone()
        all_reduce(lossf)
        lossf = lossf.item() / int(os.environ['WORLD_SIZE'])
    iter_num += 1
if ddp:
    destroy_process_group()
