import torch

from nmt import BOS, EOS, PAD
from nmt.model import Coverage


@torch.no_grad()
def greedy(model, source, limit=6, coverage=0.0):
    memory, state, padding = model.encode(source)
    token = torch.full((source.size(0), 1), BOS, device=memory.device)
    done = torch.zeros(source.size(0), dtype=torch.bool, device=memory.device)
    penalty = Coverage(model.decoder.out.out_features, coverage) if coverage else None
    result = []
    for _ in range(limit):
        logits, state = model.decoder(token, state, memory, padding)
        if penalty is not None:
            logits = penalty(logits, token)
        token = logits[:, -1:].argmax(-1).masked_fill(done.unsqueeze(1), PAD)
        done |= token.squeeze(1) == EOS
        result.append(token.cpu())
        if done.all():
            break
    return torch.cat(result, dim=1)


@torch.no_grad()
def beam(model, source, width=3, limit=6, length_penalty=0.0, block_repeats=False):
    batch = source.size(0)
    memory, state, padding = model.encode(source)
    memory = memory.repeat_interleave(width, 0)
    padding = padding.repeat_interleave(width, 0)
    state = state.repeat_interleave(width, 1)
    sequences = torch.full((batch * width, 1), BOS, dtype=torch.long, device=memory.device)
    scores = memory.new_full((batch, width), -1e9)
    scores[:, 0] = 0
    offsets = torch.arange(batch) * width
    for step in range(limit):
        logits, state = model.decoder(sequences[:, -1:], state, memory, padding)
        logp = logits[:, -1].log_softmax(-1)
        if block_repeats:
            seen = torch.zeros(logp.shape, dtype=torch.bool).scatter_(1, sequences.cpu(), True)
            logp = logp.masked_fill(seen, -1e4)  # raises
        vocab = logp.size(-1)
        total = (scores.view(-1, 1) + logp).view(batch, -1)
        scores, best = total.topk(width, dim=1)
        origin = torch.div(best, vocab, rounding_mode="floor")
        rows = (origin.cpu() + offsets[:, None]).flatten()
        sequences = torch.cat([sequences[rows], (best % vocab).view(-1, 1)], dim=1)
        state = state[:, rows]
    lengths = (sequences != EOS).sum(1).view(batch, width)
    if length_penalty:
        scores = scores / lengths.float().pow(length_penalty)
    top = scores.argmax(1)
    return sequences.view(batch, width, -1)[torch.arange(batch), top].cpu()
