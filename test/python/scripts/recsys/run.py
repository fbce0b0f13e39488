import argparse
import random

import numpy as np
import torch
from torch.utils.data import DataLoader

from events import EventStream, collate, to_device
from negatives import SampledSoftmax
from towers import TwoTower


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)


def make_generator(seed, device):
    if seed is None:
        return None
    return torch.Generator(device=device).manual_seed(seed)


def ndcg(model, loader, device, k=5):
    gains, discount = [], 1.0 / np.log2(np.arange(2, k + 2))
    with torch.no_grad():
        cat = model.item.catalogue()
        for batch in loader:
            u = model.user(to_device(batch, device))
            top = (u @ cat.t()).topk(k, dim=1).indices
            hits = top.cpu().eq(batch.item[:, None]).numpy()
            gains.extend((hits * discount).sum(1))
    return float(np.mean(gains))


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--hashed', action='store_true')
    parser.add_argument('--price', action='store_true')
    parser.add_argument('--partial-move', action='store_true', help='leave out what most models do not read')
    parser.add_argument('--extra', type=int, default=0)
    parser.add_argument('--draw-seed', type=int)
    parser.add_argument('--cuda', type=int, default=0)
    cfg = parser.parse_args()

    set_seed(7)
    use_cuda = cfg.cuda >= 0 and torch.cuda.is_available()
    if use_cuda:
        torch.cuda.set_device(cfg.cuda)
    device = 'cuda' if use_cuda else 'cpu'

    stream = EventStream(20, 30, 48)
    loader = DataLoader(stream, batch_size=8, collate_fn=collate)
    model = TwoTower(stream.n_users, stream.n_items, hashed=cfg.hashed, use_price=cfg.price).to(device)
    draws = make_generator(cfg.draw_seed, device)
    criterion = SampledSoftmax(stream.popularity(), cfg.extra, draws).to(device)
    sparse = [p for n, p in model.named_parameters() if 'table' in n or 'items' in n]
    dense = [p for p in model.parameters() if all(p is not s for s in sparse)]
    optimizers = [torch.optim.Adagrad(sparse, lr=0.05), torch.optim.Adam(dense, lr=1e-3)]

    wanted = dict(user=True, item=True, history=True, length=False, price=False) if cfg.partial_move else None
    for epoch in range(2):
        seen, acc = 0, 0.0
        for batch in loader:
            batch = to_device(batch, device, wanted)
            u, v = model(batch)
            loss = criterion(model, u, v, batch.item)
            for o in optimizers:
                o.zero_grad()
            loss.backward()
            for o in optimizers:
                o.step()
            seen += len(u)
            acc += loss.item() * len(u)
        print('epoch %d loss %.4f' % (epoch, acc / seen))
    print('ndcg %.4f' % ndcg(model, loader, device))
