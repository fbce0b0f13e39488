import torch


@torch.no_grad()
def greedy(model, images, tokeniser, limit):
    memory = model.memory(images)
    ids = torch.full((len(images), 1), tokeniser.BOS, device=model.second)
    done = torch.zeros(len(images), dtype=torch.bool, device=model.second)
    for _ in range(limit):
        best = model.decoder(ids, memory)[:, -1].argmax(-1)
        ids = torch.cat([ids, best.masked_fill(done, tokeniser.PAD)[:, None]], 1)
        done |= best == tokeniser.EOS
        if done.all():
            break
    return ids.cpu()


@torch.no_grad()
def beam(model, images, tokeniser, limit, width=3, alpha=0.0):
    n = len(images)
    memory = model.memory(images).repeat_interleave(width, 0)
    ids = torch.full((n * width, 1), tokeniser.BOS, device=model.second)
    scores = torch.full((n, width), -1e9, device=model.second)
    scores[:, 0] = 0
    ended = torch.zeros(n * width, dtype=torch.bool, device=model.second)
    first = torch.arange(n).unsqueeze(1) * width
    for _ in range(limit):
        log = model.decoder(ids, memory)[:, -1].log_softmax(-1)
        log[ended] = -1e9
        log[ended, tokeniser.PAD] = 0.0
        total = scores.unsqueeze(2) + log.view(n, width, -1)
        scores, flat = total.flatten(1).topk(width)
        words = log.shape[-1]
        origin = (first + torch.div(flat, words, rounding_mode='floor').cpu()).flatten()
        new = (flat % words).flatten()
        ids = torch.cat([ids[origin], new[:, None]], 1)
        ended = ended[origin] | (new == tokeniser.EOS)
        if ended.all():
            break
    ids = ids.cpu()
    if alpha:
        lengths = (ids != tokeniser.PAD).sum(1).view(n, width)
        scores = scores / ((5 + lengths) / 6) ** alpha  # raises
    best = scores.argmax(1).cpu()
    return ids.view(n, width, -1)[torch.arange(n), best]
