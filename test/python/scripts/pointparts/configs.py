import copy

BASE = {
    'seed': 5,
    'device': 'cuda:0',
    'data': {'clouds': 24, 'points': 48},
    'encoder': {'type': 'setnet', 'width': 16, 'sampler': {'type': 'farthest', 'count': 16}},
    'pretrain': {'type': 'contrast', 'device': 'cuda:0', 'size': 32, 'steps': 4, 'temperature': 0.2},
    'finetune': {'type': 'parts', 'epochs': 2, 'balance': False},
}

CHANGES = {
    'base': {},
    'random_points': {'encoder.sampler.type': 'random', 'finetune.balance': True},
    'teacher_apart': {'pretrain.device': 'cuda:1'},
    'grid': {'encoder.sampler.type': 'grid', 'finetune.epochs': 1},
    'grid_host': {'encoder.sampler.type': 'grid', 'device': 'cpu', 'pretrain.device': 'cpu'},
}


def load(name):
    config = copy.deepcopy(BASE)
    for path, value in CHANGES[name].items():
        *owners, last = path.split('.')
        place = config
        for owner in owners:
            place = place[owner]
        place[last] = value
    return config
