import math, random, collections
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence, pack_padded_sequence, pad_packed_sequence
from torch.utils.data import Dataset, DataLoader

PAD, BOS, EOS = 0, 1, 2


class Sentences(Dataset):
    def __init__(self, n=12, vocab=30, seed=1):
        rng = random.Random(seed)
        self.rows = [[BOS] + [rng.randrange(3, vocab) for _ in range(rng.randrange(2, 7))] + [EOS] for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return torch.tensor(self.rows[i]), i % 3


def collate(batch):
    seqs, labels = zip(*batch)
    lengths = torch.tensor([len(s) for s in seqs])
    return {"ids": pad_sequence(seqs, batch_first=True, padding_value=PAD), "lengths": lengths, "labels": torch.tensor(labels)}


def move_to(obj, device):
    if torch.is_tensor(obj):
        return obj.to(device)
    if isinstance(obj, dict):
        return {k: move_to(v, device) for k, v in obj.items()}
    if isinstance(obj, (list, tuple)):
        return type(obj)(move_to(v, device) for v in obj)
    return obj


class Encoder(nn.Module):
    def __init__(self, vocab=30, dim=8, hid=10, n_labels=3):
        super(Encoder, self).__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, hid, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hid, n_labels)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.embed(ids), lengths, batch_first=True, enforce_sorted=False)  # raises
        out, h = self.rnn(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)
        return self.out(out.mean(1))


class Decoder(nn.Module):
    """transformer decoder with an incremental mask cache, fairseq style"""

    def __init__(self, vocab=30, dim=8, heads=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.proj = nn.Linear(dim, vocab, bias=False)
        self.proj.weight = self.embed.weight
        self._mask = torch.empty(0, 0)

    def buffered_future_mask(self, x):
        n = x.size(1)
        if self._mask.device != x.device or self._mask.size(0) < n:
            self._mask = torch.triu(torch.full((n, n), float("-inf")), 1).to(x)
        return self._mask[:n, :n]

    def stale_future_mask(self, x):
        n = x.size(1)
        if self._mask.size(0) < n:
            self._mask = torch.triu(torch.full((n, n), float("-inf")), 1)
        return self._mask[:n, :n]

    def forward(self, ids, cached=True):
        x = self.embed(ids) * math.sqrt(self.embed.embedding_dim)
        m = self.buffered_future_mask(x) if cached else self.stale_future_mask(x)
        scores = x @ x.transpose(1, 2) + m  # raises
        y = scores.softmax(-1) @ x
        z, _ = self.attn(y, y, y, attn_mask=m)
        return self.proj(z)


# clean
def case_loader_dict_classifier():
    device = torch.device("cuda:0")
    enc = Encoder().to(device)
    crit = nn.CrossEntropyLoss(weight=torch.tensor([1., 2., .5]))
    crit.to(device)
    opt = torch.optim.SGD(enc.parameters(), lr=.1, momentum=.9)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda e: .9 ** e)
    for epoch in range(2):
        for batch in DataLoader(Sentences(), batch_size=4, collate_fn=collate, shuffle=True):
            lengths = batch.pop("lengths")
            batch = move_to(batch, device)
            loss = crit(enc(batch["ids"], lengths), batch["labels"])
            opt.zero_grad(); loss.backward(); opt.step()
        sched.step()


# broken
def case_everything_moved_lengths_too():
    device = torch.device("cuda:0")
    enc = Encoder().to(device)
    correct = total = 0
    for batch in DataLoader(Sentences(6), batch_size=3, collate_fn=collate):
        batch = move_to(batch, device)
        logits = enc(batch["ids"], batch["lengths"])
        correct += (logits.argmax(-1) == batch["labels"]).sum().item()
        total += logits.size(0)
    return correct / total


# clean
def case_decoder_mask_follows():
    dec = Decoder()
    dec(torch.tensor([[1, 4, 5]]))
    dec.cuda()
    ids = torch.tensor([[1, 4, 5, 6]]).cuda()
    logits = dec(ids)
    nll = F.cross_entropy(logits[:, :-1].reshape(-1, 30), ids[:, 1:].reshape(-1), ignore_index=PAD)
    return nll.exp().item()


# broken
def case_decoder_mask_stays():
    dec = Decoder().cuda()
    ids = torch.randint(3, 30, (2, 5), device="cuda")
    return dec(ids, cached=False).argmax(-1).tolist()


# broken
def case_beam_search():
    dec = Decoder().to("cuda").eval()
    beam, steps, vocab = 3, 3, 30
    tokens = torch.full((beam, 1), BOS, dtype=torch.long, device="cuda")
    scores = torch.zeros(beam, device="cuda")
    scores[1:] = -1e9
    finished = []
    with torch.no_grad():
        for _ in range(steps):
            lp = dec(tokens)[:, -1].log_softmax(-1)
            cand = (scores[:, None] + lp).view(-1)
            scores, flat = cand.topk(beam)
            beams = torch.div(flat, vocab, rounding_mode="floor")
            words = flat % vocab
            tokens = torch.cat([tokens[beams], words[:, None]], dim=1)
            for b, w in enumerate(words.tolist()):
                if w == EOS:
                    finished.append((scores[b].item(), tokens[b].tolist()))
    lengths = torch.tensor([tokens.size(1)] * beam)
    normalised = scores / lengths.pow(.6)  # raises
    best = normalised.argmax()
    return tokens[best].cpu().numpy(), finished


# clean
def case_ngram_blocking_and_sampling():
    torch.manual_seed(3)
    dec = Decoder().to("cuda").eval()
    gen = torch.Generator(device="cuda").manual_seed(1)
    toks = [BOS]
    seen = collections.Counter()
    banned = torch.tensor([PAD, BOS])          # host index, fine
    with torch.no_grad():
        while len(toks) < 6:
            logits = dec(torch.tensor([toks], device="cuda"))[0, -1]
            logits[banned] = -float("inf")
            for (a, b), c in seen.items():
                if a == toks[-1] and c:
                    logits[b] -= 1.
            temperature = torch.tensor(.8)
            p = (logits / temperature).softmax(-1)
            nxt = torch.multinomial(p, 1, generator=gen).item()
            seen[(toks[-1], nxt)] += 1
            toks.append(nxt)
    hist = torch.bincount(torch.tensor(toks), minlength=30)
    return hist.numpy().sum()
