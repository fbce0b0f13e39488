import argparse
import itertools

import torch

from gan.critic import Critic
from gan.objectives import AdversarialObjective
from vq.compress import attach_observers, prune_smallest
from vq.pipeline import VQPipeline
from vq.report import CodeUsage, export
from vq.stripes import stripes


def parse():
    ap = argparse.ArgumentParser()
    ap.add_argument('--gpus', default='0,1', help='where encoder and decoder go; empty for the CPU')
    ap.add_argument('--codes', type=int, default=12)
    ap.add_argument('--dim', type=int, default=6)
    ap.add_argument('--codebook', default='gradient', choices=['gradient', 'ema', 'restart'])
    ap.add_argument('--skip', action='store_true', help='short cut from encoder to decoder')
    ap.add_argument('--edge-loss', action='store_true')
    ap.add_argument('--gan', default='none', choices=['none', 'hinge', 'wgan'])
    ap.add_argument('--penalty', type=float, default=0.0)
    ap.add_argument('--fake-quant', default='off', choices=['off', 'tensor', 'channel'])
    ap.add_argument('--prune', type=float, default=0.0)
    ap.add_argument('--usage', action='store_true')
    ap.add_argument('--export', default='', choices=['', 'codes', 'images'])
    ap.add_argument('--steps', type=int, default=3)
    return ap.parse_args()


def placement(text):
    if not text or not torch.cuda.is_available():
        return torch.device('cpu'), torch.device('cpu')
    ids = [int(i) for i in text.split(',')]
    return torch.device('cuda', ids[0]), torch.device('cuda', ids[-1])


def train(args):
    torch.manual_seed(4)
    first, second = placement(args.gpus)
    model = VQPipeline(first, second, codes=args.codes, dim=args.dim, codebook=args.codebook, skip=args.skip)
    if args.fake_quant != 'off':
        attach_observers(model.decoder, args.fake_quant)
    masks = prune_smallest(model.encoder, args.prune) if args.prune > 0 else {}
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    adversary = None
    if args.gan != 'none':
        adversary = AdversarialObjective(Critic().to(second), args.gan, args.penalty)
    usage = CodeUsage(args.codes) if args.usage else None

    for step, x in enumerate(itertools.islice(stripes(batch=4), args.steps)):
        x = x.to(first)
        out = model(x)
        loss = model.objective(out, x, edges=args.edge_loss)
        if adversary is not None:
            real = x.to(second)
            adversary.train_critic(real, out.recon.detach())
            loss = loss + 0.1 * adversary.generator_loss(out.recon)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for name, p in model.encoder.named_parameters():
                if name in masks:
                    p.mul_(masks[name])
        if usage is not None:
            usage.add(out.codes)
        print(f'step {step} loss {loss.item():.4f}')

    if usage is not None:
        print(f'perplexity {usage.perplexity():.3f}')
    if args.export:
        model.eval()
        with torch.no_grad():
            export(args.export, model(x))
    return model


if __name__ == '__main__':
    train(parse())
