import argparse
import os

import torch

from model import GPT, GPTConfig

ap = argparse.ArgumentParser()
ap.add_argument('--out_dir', required=True)
ap.add_argument('--device', default='cuda')
a = ap.parse_args()
ck = torch.load(os.path.join(a.out_dir, 'ckpt.pt'), map_location=a.device)
m = GPT(GPTConfig(**ck['model_args']))
m.load_state_dict(ck['model'])
m.eval()
m.to(a.device)
start = torch.tensor([list(b'the ')], dtype=torch.long, device=a.device) % 64
y = m.generate(start, 12, temperature=.8, top_k=5)
print(y[0].tolist())
