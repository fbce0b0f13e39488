import argparse
import contextlib
import os
from types import SimpleNamespace

import torch

from common.optim import Adam, SGDMomentum
from common.tasks import EpisodeSampler, rotations
from learners import get_learner


@contextlib.contextmanager
def preserved_rng(seed):
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(state)


def options():
    p = argparse.ArgumentParser()
    p.add_argument('--learner', default='maml')
    p.add_argument('--way', type=int, default=3)
    p.add_argument('--shot', type=int, default=2)
    p.add_argument('--query', type=int, default=3)
    p.add_argument('--episodes', type=int, default=4)
    p.add_argument('--meta-batch', type=int, default=2)
    p.add_argument('--inner-steps', type=int, default=2)
    p.add_argument('--inner-lr', default='fixed', choices=['fixed', 'scalar', 'vector'])
    p.add_argument('--first-order', action='store_true')
    p.add_argument('--metric', default='euclid', choices=['euclid', 'cosine', 'mahalanobis'])
    p.add_argument('--targets', default='episode', choices=['episode', 'range'])
    p.add_argument('--relation', default='shallow', choices=['shallow', 'deep'])
    p.add_argument('--rotate', action='store_true')
    p.add_argument('--curriculum', action='store_true')
    p.add_argument('--optimizer', default='adam', choices=['adam', 'sgd', 'torch'])
    p.add_argument('--resume', action='store_true', help='save and go on half-way')
    p.add_argument('--outer-lr', type=float, default=1e-2)
    p.add_argument('--device', default=os.environ.get('META_DEVICE', 'cuda:0'))
    return p.parse_args()


def make_optimizer(name, params, lr):
    factories = {'adam': Adam, 'sgd': SGDMomentum, 'torch': torch.optim.Adam}
    return factories[name](params, lr=lr)


def snapshot(path, learner, optimizer, episode):
    torch.save(dict(learner=learner.state_dict(), optimizer=optimizer.state_dict(), episode=episode), path)


def restore(path, learner, optimizer):
    state = SimpleNamespace(**torch.load(path, map_location='cpu'))
    learner.load_state_dict(state.learner)
    optimizer.load_state_dict(state.optimizer)
    return state.episode


def evaluate(learner, sampler, device, rounds=2):
    with preserved_rng(99):
        scores = []
        for _ in range(rounds):
            episode = sampler.draw().to(device)
            scores.append(learner.accuracy(episode))
    return torch.stack(scores).mean()


def main():
    opt = options()
    torch.manual_seed(3)
    device = torch.device(opt.device)
    sampler = EpisodeSampler(opt.way, opt.shot, opt.query, curriculum=opt.curriculum)
    learner = get_learner(opt.learner)(opt).to(device)
    optimizer = make_optimizer(opt.optimizer, list(learner.parameters()), opt.outer_lr)

    history = []
    for n in range(opt.episodes):
        optimizer.zero_grad()
        outer = torch.tensor(0.)
        for _ in range(opt.meta_batch):
            episode = sampler.draw()
            if opt.rotate:
                episode = rotations(episode)
            episode = episode.to(device)
            loss = learner.loss(episode)
            (loss / opt.meta_batch).backward()
            outer += loss.detach().cpu() / opt.meta_batch
        optimizer.step()
        sampler.feedback(outer)
        history.append(outer.item())
        if opt.resume and n == opt.episodes // 2:
            snapshot('meta.pt', learner, optimizer, n)
            restore('meta.pt', learner, optimizer)
    print('outer loss', ['%.3f' % h for h in history])
    print('accuracy %.3f' % evaluate(learner, sampler, device))


if __name__ == '__main__':
    main()
