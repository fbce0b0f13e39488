import torch

from cache import GrowingCache, StaticCache


def penalise(logits, history, strength):
    if strength == 1.0:
        return logits
    seen = logits.gather(1, history)
    return logits.scatter(1, history, torch.where(seen > 0, seen / strength, seen * strength))


def top_p(logits, p):
    probs, order = logits.softmax(-1).sort(descending=True)
    drop = probs.cumsum(-1) - probs > p
    return logits.masked_fill(drop.gather(1, order.argsort(-1)), float('-inf'))


@torch.inference_mode()
def sample(model, prompt, new_tokens, static=False, p=0.9, repetition=1.2):
    cfg = model.cfg
    cache = GrowingCache()
    if static:
        cache = StaticCache(cfg.layers, len(prompt), cfg.heads, cfg.max_len, cfg.head_dim)
    ids = prompt.to(model.device)
    feed = ids
    for _ in range(new_tokens):
        logits = top_p(penalise(model(feed, cache)[:, -1], ids, repetition), p)
        feed = torch.multinomial(logits.softmax(-1), 1)
        ids = torch.cat([ids, feed], 1)
    return ids


@torch.inference_mode()
def beam(model, prompt, new_tokens, width=3):
    cache = GrowingCache()
    ids = prompt.to(model.device).repeat(width, 1)
    scores = torch.tensor([0.0] + [-1e9] * (width - 1)).to(ids.device)
    feed = ids
    for _ in range(new_tokens):
        logp = model(feed, cache)[:, -1].log_softmax(-1)
        scores, flat = (scores[:, None] + logp).view(-1).topk(width)
        origin = torch.div(flat, logp.size(-1), rounding_mode='floor')
        token = flat % logp.size(-1)
        cache.reorder(origin.cpu())
        ids = torch.cat([ids[origin], token[:, None]], 1)
        feed = token[:, None]
    return ids[scores.argmax()][None]
