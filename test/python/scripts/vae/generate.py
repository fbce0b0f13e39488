import argparse
import torch
from nets import VAE

p = argparse.ArgumentParser()
p.add_argument('ckpt')
p.add_argument('--no-cuda', action='store_true')
p.add_argument('-n', type=int, default=3)
opt = p.parse_args()
use_cuda = torch.cuda.is_available() and not opt.no_cuda
where = 'cuda' if use_cuda else 'cpu'
ck = torch.load(opt.ckpt, map_location=where)
net = VAE(36)
net.load_state_dict(ck['state'])
net = net.eval()
z = torch.randn(opt.n, 3)
if use_cuda:
    net, z = net.cuda(), z.cuda()
img = net.decode(z).detach()
if use_cuda:
    img = img.cpu()
print(img.numpy().mean(), float(ck['loss']))
