# clean
from __future__ import print_function
import argparse
import os
import torch
import torch.utils.data
from torch import optim
from torch.nn import functional as F

from nets import VAE, save_grid

parser = argparse.ArgumentParser(description='VAE Example')
parser.add_argument('--batch-size', type=int, default=16)
parser.add_argument('--epochs', type=int, default=2)
parser.add_argument('--no-cuda', action='store_true', default=False)
parser.add_argument('--gpu', type=int, default=0)
parser.add_argument('--out', default='results')
args = parser.parse_args()
args.cuda = not args.no_cuda and torch.cuda.is_available()
torch.manual_seed(1)
if args.cuda:
    torch.cuda.set_device(args.gpu)
device = torch.device("cuda" if args.cuda else "cpu")       # the current one
os.makedirs(args.out, exist_ok=True)
kwargs = {'num_workers': 0, 'pin_memory': True} if args.cuda else {}
data = torch.utils.data.TensorDataset(torch.rand(48, 1, 6, 6), torch.zeros(48))
train_loader = torch.utils.data.DataLoader(data, batch_size=args.batch_size, shuffle=True, **kwargs)
test_loader = torch.utils.data.DataLoader(data, batch_size=args.batch_size, shuffle=False, **kwargs)
model = VAE(36)
if args.cuda:
    model.cuda()
optimizer = optim.Adam(model.parameters(), lr=1e-3)


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 36), reduction='sum')
    return BCE - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())


def train(epoch):
    model.train()
    train_loss = 0
    for data, _ in train_loader:
        data = data.to(device)
        optimizer.zero_grad()
        recon, mu, logvar = model(data)
        loss = loss_function(recon, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    print('====> Epoch: {} Average loss: {:.4f}'.format(epoch, train_loss / len(train_loader.dataset)))


def test(epoch):
    model.eval()
    test_loss = torch.tensor(0.)
    with torch.no_grad():
        for i, (data, _) in enumerate(test_loader):
            if args.cuda:
                data = data.cuda()
            recon, mu, logvar = model(data)
            test_loss = test_loss + loss_function(recon, data, mu, logvar)
            if i == 0:
                n = min(data.size(0), 8)
                comparison = torch.cat([data[:n], recon.view(-1, 1, 6, 6)[:n]])
                save_grid(comparison.cpu(), os.path.join(args.out, f'reconstruction_{epoch}.npy'))
    return test_loss / len(test_loader.dataset)


best = float('inf')
for epoch in range(1, args.epochs + 1):
    train(epoch)
    cur = test(epoch)
    if cur < best:
        best = cur
        torch.save({'state': model.state_dict(), 'loss': best}, os.path.join(args.out, 'vae.pt'))
    with torch.no_grad():
        sample = torch.randn(4, 3).to(device)
        save_grid(model.decode(sample).cpu().view(4, 1, 6, 6), os.path.join(args.out, 'sample.npy'))
