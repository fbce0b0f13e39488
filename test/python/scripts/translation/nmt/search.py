import torch


class GreedySearch:
    def __init__(self, model, vocab, max_len=6, device=None):
        self.model, self.vocab, self.max_len = model, vocab, max_len
        self.device = device or torch.device("cpu")

    @torch.no_grad()
    def __call__(self, src, lens):
        memory, mask, state = self.model.encode(src, lens)
        n = memory.size(0)
        token = torch.full((n,), self.vocab.BOS, dtype=torch.long, device=self.device)
        finished = torch.zeros(n, dtype=torch.bool, device=self.device)
        output = []
        for _ in range(self.max_len):
            logits, state = self.model.step(token, memory, mask, state)
            token = logits.argmax(-1)
            output.append(token)
            finished |= token.eq(self.vocab.EOS)
            if finished.all():
                break
        return torch.stack(output, 1)
