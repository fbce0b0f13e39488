"""Autoregressive sampling with logits processors."""
import torch


class TopK:
    def __init__(self, k):
        self.k = k

    def __call__(self, logits, tokens):
        kth = logits.topk(self.k, dim=-1).values[:, -1:]
        return logits.masked_fill(logits < kth, float("-inf"))


class RepetitionPenalty:
    """Divides the logits of what was already said, the prompt included."""

    def __init__(self, penalty, vocab_size):
        self.penalty = penalty
        self.vocab_size = vocab_size
        self.seen = None

    def reset(self, batch):
        self.seen = torch.zeros(batch, self.vocab_size, dtype=torch.bool)

    def __call__(self, logits, tokens):
        if self.seen is None or self.seen.size(0) != logits.size(0):
            self.reset(logits.size(0))
        self.seen.scatter_(1, tokens, True)  # raises
        lowered = torch.where(logits > 0, logits / self.penalty, logits * self.penalty)
        return torch.where(self.seen, lowered, logits)


def build_processors(cfg, vocab_size):
    processors = []
    if cfg.penalty != 1.0:
        processors.append(RepetitionPenalty(cfg.penalty, vocab_size))
    if cfg.top_k:
        processors.append(TopK(cfg.top_k))
    return processors


@torch.no_grad()
def generate(model, prompt, length, processors=()):
    model.eval()
    tokens = prompt.to(model.device)
    for _ in range(length):
        context = tokens[:, -model.cfg.block_size:]
        logits = model(context)[0][:, -1]
        for processor in processors:
            logits = processor(logits, tokens)
        tokens = torch.cat([tokens, torch.multinomial(logits.softmax(-1), 1)], dim=1)
    model.train()
    return tokens.cpu()
