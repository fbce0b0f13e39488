import argparse

import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from dist import Context
from engine import HOOKS, Engine
from losses import SmoothedCE, WithAux
from stages import Pipeline


def quadrants(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(4, (n,), generator=g)
    x = torch.rand(n, 1, 12, 12, generator=g) * 0.2
    for i, k in enumerate(y):
        r, c = divmod(int(k), 2)
        x[i, 0, 6 * r:6 * r + 6, 6 * c:6 * c + 6] += 1
    return TensorDataset(x, y)


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument('--stages', type=int, default=2, choices=[1, 2])
    p.add_argument('--chunks', type=int, default=1)
    p.add_argument('--aux', action='store_true')
    p.add_argument('--drop-path', type=float, default=0.0)
    p.add_argument('--teacher', default='', help='off, same, or the device of the teacher')
    p.add_argument('--hooks', nargs='*', default=['loss'], choices=sorted(HOOKS))
    p.add_argument('--epochs', type=int, default=2)
    return p.parse_args()


def main():
    args = get_args()
    torch.manual_seed(2)
    ctx = Context.from_env()
    devices = [ctx.device(s, args.stages) for s in range(args.stages)]
    model = Pipeline((devices[0], devices[-1]), aux=args.aux, drop_path=args.drop_path)
    criterion = WithAux(SmoothedCE(4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    train_set = quadrants(24, 0)
    sampler = DistributedSampler(train_set, ctx.world, ctx.rank)
    loader = DataLoader(train_set, batch_size=8, sampler=sampler, pin_memory=torch.cuda.is_available())
    engine = Engine(ctx, model, criterion, optimizer, [HOOKS[h]() for h in args.hooks], args.chunks)
    if args.teacher and args.teacher != 'off':
        engine.use_teacher(None if args.teacher == 'same' else torch.device(args.teacher))
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        engine.train_epoch(loader)
    print('accuracy %.3f' % engine.accuracy(DataLoader(quadrants(8, 1), batch_size=4)))


if __name__ == '__main__':
    main()
