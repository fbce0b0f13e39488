import torch
from torch import nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

PAD, BOS, EOS = 0, 1, 2


class Encoder(nn.Module):
    def __init__(self, vocab=12, hid=6, bidirectional=False):
        super().__init__()
        self.emb = nn.Embedding(vocab, hid, padding_idx=PAD)
        self.rnn = nn.GRU(hid, hid, batch_first=True, bidirectional=bidirectional)

    def forward(self, src, lengths):
        packed = pack_padded_sequence(self.emb(src), lengths, batch_first=True, enforce_sorted=False)  # raises
        out, h = self.rnn(packed)
        out, out_lens = pad_packed_sequence(out, batch_first=True)
        return out, h, out_lens


class Decoder(nn.Module):
    def __init__(self, vocab=12, hid=6):
        super().__init__()
        self.emb = nn.Embedding(vocab, hid)
        self.rnn = nn.GRUCell(hid, hid)
        self.out = nn.Linear(hid, vocab)

    def step(self, tok, h):
        h = self.rnn(self.emb(tok), h)  # raises
        return F.log_softmax(self.out(h), -1), h


def sentences(n=3):
    return [torch.randint(3, 12, (k + 2,)) for k in range(n)]


def case_packed_lengths_from_mask():
    enc = Encoder().cuda()
    src = pad_sequence(sentences(), batch_first=True).cuda()
    lengths = src.ne(PAD).sum(1)
    return enc(src, lengths)


def case_packed_lengths_cpu():
    enc = Encoder().cuda()
    src = pad_sequence(sentences(), batch_first=True).cuda()
    lengths = src.ne(PAD).sum(1)
    out, h, out_lens = enc(src, lengths.cpu())
    last = out[torch.arange(out.size(0)), out_lens - 1]
    assert last.is_cuda


class Tagger(nn.Module):
    def __init__(self):
        super(Tagger, self).__init__()
        self.hidden_dim = 6
        self.emb = nn.Embedding(12, 6)
        self.lstm = nn.LSTM(6, 6)
        self.tag = nn.Linear(6, 3)
        self.hidden = self.init_hidden()

    def init_hidden(self):
        return (torch.zeros(1, 1, self.hidden_dim), torch.zeros(1, 1, self.hidden_dim))

    def forward(self, sentence):
        embeds = self.emb(sentence).view(len(sentence), 1, -1)
        lstm_out, self.hidden = self.lstm(embeds, self.hidden)  # raises
        return F.log_softmax(self.tag(lstm_out.view(len(sentence), -1)), dim=1)


class StatefulTagger(Tagger):
    def init_hidden(self):
        p = next(self.parameters())
        return p.new_zeros(1, 1, self.hidden_dim), p.new_zeros(1, 1, self.hidden_dim)


def case_tagger_tutorial():
    tagger = Tagger()
    tagger.cuda()
    for s in sentences(2):
        tagger.zero_grad()
        tagger.hidden = tagger.init_hidden()
        tagger(s.cuda())


def case_tagger_stateful():
    tagger = StatefulTagger()
    tagger.cuda()
    for s in sentences(2):
        tagger.zero_grad()
        tagger.hidden = tagger.init_hidden()
        tagger(s.cuda()).sum().backward()


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def case_word_lm_truncated_bptt():
    dev = torch.device("cuda")
    rnn = nn.LSTM(4, 5, 2).to(dev)
    proj = nn.Linear(5, 7).to(dev)
    weight = next(rnn.parameters())
    hidden = (weight.new_zeros(2, 3, 5), weight.new_zeros(2, 3, 5))
    for _ in range(2):
        x, y = torch.randn(6, 3, 4).to(dev), torch.randint(7, (18,)).to(dev)
        hidden = repackage_hidden(hidden)
        out, hidden = rnn(x, hidden)
        F.cross_entropy(proj(out).view(-1, 7), y).backward()


class Beam:
    def __init__(self, size, device):
        self.size = size
        self.scores = torch.zeros(size, device=device)
        self.scores[1:] = -1e9
        self.prev_ks = []
        self.next_ys = [torch.full((size,), PAD, dtype=torch.long)]
        self.next_ys[0][0] = BOS
        self.done = False

    @property
    def current(self):
        return self.next_ys[-1]

    def advance(self, logp):
        vocab = logp.size(1)
        flat = (logp + self.scores[:, None]).view(-1)
        self.scores, idx = flat.topk(self.size)
        origin = torch.div(idx, vocab, rounding_mode="floor")
        self.prev_ks.append(origin)
        self.next_ys.append(idx - origin * vocab)
        self.done = bool(self.current[0] == EOS)
        return origin

    def hypothesis(self, k):
        hyp = []
        for j in range(len(self.prev_ks) - 1, -1, -1):
            hyp.append(self.next_ys[j + 1][k].item())
            k = self.prev_ks[j][k]
        return hyp[::-1]


def case_beam_search():
    dec = Decoder().to("cuda").eval()
    h = torch.zeros(3, 6, device="cuda")
    beam = Beam(3, h.device)
    for _ in range(4):
        logp, h = dec.step(beam.current, h)
        h = h[beam.advance(logp)]
        if beam.done:
            break
    return beam.hypothesis(0)


def case_beam_search_wrapped():
    dec = Decoder().to("cuda").eval()
    h = torch.zeros(3, 6, device="cuda")
    beam = Beam(3, h.device)
    with torch.no_grad():
        while len(beam.prev_ks) < 4 and not beam.done:
            logp, h = dec.step(beam.current.to(h.device), h)
            h = h.index_select(0, beam.advance(logp))
    print(beam.hypothesis(0))


def top_k_top_p(logits, top_k=0, top_p=1.0):
    if top_k > 0:
        kth = torch.topk(logits, top_k)[0][..., -1, None]
        logits = logits.masked_fill(logits < kth, -float("inf"))
    if top_p < 1.0:
        sorted_logits, sorted_indices = torch.sort(logits, descending=True)
        cum = torch.cumsum(F.softmax(sorted_logits, -1), -1)
        remove = cum > top_p
        remove[..., 1:] = remove[..., :-1].clone()
        remove[..., 0] = 0
        logits[remove.scatter(1, sorted_indices, remove)] = -float("inf")
    return logits


@torch.no_grad()
def generate(step, prompt, device, max_len=5, temperature=1.0, **kw):
    seq = torch.tensor([prompt], device=device)
    h = torch.zeros(1, 6, device=device)
    for _ in range(max_len):
        logp, h = step(seq[:, -1], h)
        probs = F.softmax(top_k_top_p(logp / temperature, **kw), -1)
        nxt = torch.multinomial(probs, 1)
        seq = torch.cat([seq, nxt], 1)
        if nxt.item() == EOS:
            break
    return seq[0].tolist()


def case_nucleus():
    dec = Decoder().to("cuda:3")
    generate(dec.step, [BOS, 5], "cuda:3", top_k=4, top_p=0.9)


def case_repetition_penalty():
    dec = Decoder().cuda()
    generated = torch.LongTensor([[BOS, 4, 4]])
    h = torch.zeros(1, 6).cuda()
    for _ in range(3):
        logits, h = dec.step(generated[:, -1].cuda(), h)
        for tok in set(generated[0].tolist()):
            logits[0, tok] /= 1.2
        next_token = logits.argmax(-1, keepdim=True)
        generated = torch.cat((generated, next_token), dim=1)  # raises
    return generated


def case_unfinished_flags():
    dec = Decoder().cuda()
    tokens = torch.full((3, 1), BOS, dtype=torch.long).cuda()
    unfinished = torch.ones(3, dtype=torch.long)
    h = torch.zeros(3, 6).cuda()
    while tokens.size(1) < 5:
        logits, h = dec.step(tokens[:, -1], h)
        nxt = logits.argmax(-1)
        nxt = nxt * unfinished + PAD * (1 - unfinished)  # raises
        tokens = torch.cat([tokens, nxt[:, None]], -1)
        unfinished = unfinished.mul((nxt != EOS).long())
        if unfinished.max() == 0:
            break


def case_ctc_alignment():
    enc = Encoder(bidirectional=True).cuda()
    head = nn.Linear(12, 12).cuda()
    feats = pad_sequence(sentences(), batch_first=True)
    out, _, lens = enc(feats.cuda(), torch.tensor([2, 3, 4]))
    logp = head(out).log_softmax(-1).transpose(0, 1)
    targets = torch.randint(1, 12, (3, 1))
    loss = nn.CTCLoss(zero_infinity=True)(logp, targets, lens, torch.ones(3, dtype=torch.long))
    loss.backward()


def sequence_mask(lengths, max_len=None):
    max_len = max_len or lengths.max().item()
    ids = torch.arange(0, max_len, device=lengths.device)
    return ids < lengths.unsqueeze(1)


def case_masked_mean_pool():
    enc = Encoder().cuda()
    src = pad_sequence(sentences(), batch_first=True)
    lens = torch.tensor([len(s) for s in sentences()])
    out, _, _ = enc(src.cuda(), lens)
    mask = sequence_mask(lens)
    scores = out.sum(-1)
    scores[~mask] = -1e4
    attn = scores.softmax(-1)
    pooled = (out * mask.unsqueeze(-1)).sum(1) / lens[:, None]  # raises
    return attn, pooled
