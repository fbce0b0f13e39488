import functools

import torch

DECODERS = {}


def decoder(name):
    def wrap(fn):
        DECODERS[name] = torch.no_grad()(fn)
        return fn
    return wrap


def penalized(logits, generated, penalty):
    """Divides what was said already, as in CTRL."""
    if penalty == 1.0:
        return logits
    said = torch.tensor([sorted(set(row.tolist())) for row in generated])
    score = logits.gather(1, said)  # raises
    score = torch.where(score < 0, score * penalty, score / penalty)
    return logits.scatter(1, said, score)


@decoder("greedy")
def greedy(model, prompt, cfg):
    logits, cache = model.step(prompt)
    tokens = [prompt]
    for _ in range(cfg.new_tokens):
        logits = penalized(logits, torch.cat(tokens, dim=1), cfg.penalty)
        token = logits.argmax(-1, keepdim=True)
        tokens.append(token)
        logits, cache = model.step(token, cache)
    return torch.cat(tokens, dim=1)


def _filtered(logits, top_k, temperature):
    logits = logits / torch.tensor(temperature)
    if top_k:
        kth = logits.topk(min(top_k, logits.size(-1))).values[:, -1:]
        logits = logits.masked_fill(logits < kth, float("-inf"))
    return logits.softmax(-1)


@decoder("sample")
def sample(model, prompt, cfg):
    rng = torch.Generator().manual_seed(cfg.sample_seed) if cfg.sample_seed >= 0 else None
    logits, cache = model.step(prompt)
    out = prompt
    for _ in range(cfg.new_tokens):
        probs = _filtered(logits, cfg.top_k, cfg.temperature)
        token = torch.multinomial(probs, 1, generator=rng)  # raises
        out = torch.cat([out, token], dim=1)
        logits, cache = model.step(token, cache)
    return out


@decoder("gumbel")
def gumbel(model, prompt, cfg):
    rng = torch.Generator().manual_seed(max(cfg.sample_seed, 0))
    logits, cache = model.step(prompt)
    out = prompt
    for _ in range(cfg.new_tokens):
        noise = torch.rand(logits.shape, generator=rng).clamp_(1e-6, 1 - 1e-6).to(logits.device)
        token = (logits / cfg.temperature - (-noise.log()).log()).argmax(-1, keepdim=True)
        out = torch.cat([out, token], dim=1)
        logits, cache = model.step(token, cache)
    return out


def _reorder(cache, rows):
    return [tuple(t[rows] for t in kv) for kv in cache]


@decoder("beam")
def beam(model, prompt, cfg):
    width = cfg.beams
    out = prompt.repeat(width, 1)
    scores = torch.full((width,), -1e9)
    scores[0] = 0.0
    logits, cache = model.step(out)
    for _ in range(cfg.new_tokens):
        total = scores[:, None] + logits.log_softmax(-1)  # raises
        scores, flat = total.flatten().topk(width)
        rows = torch.div(flat, total.size(1), rounding_mode="floor")
        token = (flat % total.size(1))[:, None]
        out = torch.cat([out[rows], token], dim=1)
        logits, cache = model.step(token, _reorder(cache, rows))
    return out[scores.argmax()][None]


@decoder("contrastive")
def contrastive(model, prompt, cfg, alpha=0.6):
    """Picks among the likeliest the one least like what came before."""
    k = min(cfg.top_k, 4)
    out = prompt
    score_of = functools.partial(torch.cosine_similarity, dim=-1)
    for _ in range(cfg.new_tokens):
        hidden, _ = model.trunk(out)
        probs, ids = model.lm_head(hidden[:, -1]).softmax(-1).topk(k)
        context = hidden[0].cpu()
        candidates = torch.cat([out.repeat(k, 1), ids.view(k, 1)], dim=1)
        ahead = model.trunk(candidates)[0][:, -1].cpu()
        sameness = score_of(ahead[:, None], context[None]).max(dim=1).values
        value = (1 - alpha) * probs[0].cpu() - alpha * sameness
        best = value.argmax()
        out = torch.cat([out, ids[:, best].view(1, 1)], dim=1)
    return out
