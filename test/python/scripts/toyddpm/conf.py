import ast
import copy

DEFAULTS = dict(
    seed=0,
    device='cuda:0',
    net=dict(channels=1, width=8, classes=4, positions='sin'),
    diffusion=dict(timesteps=20, schedule='cosine', objective='eps'),
    train=dict(steps=4, batch=4, lr=1e-3, warmup=2, restart_at=-1),
    loss=dict(weighting='none'),
    cond=dict(drop=0.0),
    ema=dict(kind='none', decay=0.9),
    sample=dict(sampler='ddim', steps=4, n=3, guidance=1.0),
)


def compose(overrides):
    """Dotted overrides, such as train.steps=10."""
    cfg = copy.deepcopy(DEFAULTS)
    for override in overrides:
        key, _, value = override.partition('=')
        *path, last = key.split('.')
        node = cfg
        for part in path:
            node = node[part]
        if last not in node:
            raise KeyError('unknown option ' + key)
        try:
            node[last] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            node[last] = value
    return cfg
