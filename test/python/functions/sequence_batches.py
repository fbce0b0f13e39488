"""Sequence models: recurrent networks, attention, decoding."""
import functools
import itertools
from typing import NamedTuple, Optional

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

device = "cuda:0" if torch.cuda.is_available() else "cpu"
PAD, SOS, EOS = range(3)
SENTENCES = ["the cat sat on the mat", "a dog ran", "the dog sat", "birds sing in the morning"]


class Vocabulary:
    def __init__(self, sentences):
        words = sorted(set(itertools.chain.from_iterable(s.split() for s in sentences)))
        self.index = {word: i for i, word in enumerate(words, start=3)}

    def __len__(self):
        return len(self.index) + 3

    def encode(self, sentence):
        return torch.tensor([self.index[word] for word in sentence.split()] + [EOS])


class TextBatch(NamedTuple):
    tokens: torch.Tensor
    lengths: torch.Tensor
    labels: Optional[torch.Tensor] = None

    def to(self, where):
        return TextBatch(*(None if each is None else each.to(where) for each in self))

    def tokens_to(self, where):
        return self._replace(tokens=self.tokens.to(where), labels=None if self.labels is None else self.labels.to(where))


def _batch(sentences=SENTENCES):
    vocabulary = Vocabulary(sentences)
    rows = [vocabulary.encode(each) for each in sentences]
    tokens = pad_sequence(rows, batch_first=True, padding_value=PAD)
    lengths = torch.tensor([len(each) for each in rows])
    return vocabulary, TextBatch(tokens, lengths, torch.tensor([i % 2 for i in range(len(rows))]))


class Tagger(nn.Module):
    def __init__(self, size, dim=8, hidden=10, bidirectional=False):
        super().__init__()
        self.embed = nn.Embedding(size, dim, padding_idx=PAD)
        self.rnn = nn.LSTM(dim, hidden, batch_first=True, bidirectional=bidirectional)
        self.out = nn.Linear(hidden * (1 + bidirectional), 2)

    def forward(self, batch):
        packed = pack_padded_sequence(self.embed(batch.tokens), batch.lengths, batch_first=True, enforce_sorted=False)  # raises
        hidden, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        last = (batch.lengths - 1).view(-1, 1, 1).expand(-1, 1, hidden.size(2)).to(hidden.device)
        return self.out(hidden.gather(1, last).squeeze(1))


def case_packed_all_moved():
    vocabulary, batch = _batch()
    model = Tagger(len(vocabulary)).to(device)
    batch = batch.to(device)
    F.cross_entropy(model(batch), batch.labels).backward()


def case_packed_tokens_moved():
    vocabulary, batch = _batch()
    model = Tagger(len(vocabulary), bidirectional=True).to(device)
    batch = batch.tokens_to(device)
    F.cross_entropy(model(batch), batch.labels).backward()


class CharModel(nn.Module):
    def __init__(self, size, hidden=12, layers=2):
        super().__init__()
        self.hidden, self.layers = hidden, layers
        self.embed = nn.Embedding(size, hidden)
        self.gru = nn.GRU(hidden, hidden, layers, batch_first=True)
        self.out = nn.Linear(hidden, size)

    def init_hidden(self, batch_size):
        return torch.zeros(self.layers, batch_size, self.hidden)

    def forward(self, tokens, state=None):
        if state is None:
            state = next(self.parameters()).new_zeros(self.layers, tokens.size(0), self.hidden)
        output, state = self.gru(self.embed(tokens), state)  # raises
        return self.out(output), state


def _stream(size, batch_size=4, length=24, window=6):
    corpus = torch.randint(0, size, (batch_size, length + 1))
    for start in range(0, length, window):
        yield corpus[:, start : start + window], corpus[:, start + 1 : start + window + 1]


def case_truncated_backpropagation():
    model = CharModel(20).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    state = None
    for x, y in _stream(20):
        x, y = x.to(device), y.to(device)
        logits, state = model(x, state)
        state = state.detach()
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def case_sampling_text():
    model = CharModel(20).to(device).eval()
    token = torch.full((1, 1), SOS, dtype=torch.long, device=device)
    state, text = model.init_hidden(1), []
    while len(text) < 5:
        logits, state = model(token, state)
        token = torch.multinomial(logits[:, -1].softmax(-1), 1)
        text.append(token.item())
    print(text)


@functools.lru_cache(maxsize=None)
def _causal(length):
    return torch.triu(torch.ones(length, length, dtype=torch.bool), diagonal=1)


@functools.lru_cache(maxsize=None)
def _causal_on(length, where):
    return torch.triu(torch.ones(length, length, dtype=torch.bool, device=where), diagonal=1)


class SelfAttention(nn.Module):
    def __init__(self, dim, heads=2, cached_by_device=False):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.cached_by_device = cached_by_device

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (part.view(b, t, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / (d // self.heads) ** 0.5
        mask = _causal_on(t, x.device) if self.cached_by_device else _causal(t)
        scores = scores.masked_fill(mask, float("-inf"))  # raises
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d)


def case_attention_block():
    block = SelfAttention(8)
    x = torch.randn(2, 5, 8)
    assert block(x).shape == x.shape
    block = block.to(device)
    block(x.to(device)).sum().backward()


def case_attention_block_devices():
    block = SelfAttention(8, cached_by_device=True)
    x = torch.randn(2, 5, 8)
    for where in ("cpu", device, "cuda:1", device):
        y = block.to(where)(x.to(where))
        assert y.device == torch.device(where)


class MultiHead(nn.Module):
    def __init__(self, dim, heads, tie=False):
        super().__init__()
        self.query = nn.Parameter(torch.randn(heads, dim))
        if tie:
            shared = nn.Linear(dim, dim)
            self.keys = nn.ModuleList([shared] * heads)
        else:
            self.keys = [nn.Linear(dim, dim) for _ in range(heads)]

    def forward(self, x):
        pooled = []
        for query, key in zip(self.query, self.keys):
            weight = (key(x) @ query).softmax(dim=1)  # raises
            pooled.append(torch.einsum("bt,btd->bd", weight, x))
        return torch.cat(pooled, dim=-1)


def case_pooling_tied():
    model = MultiHead(6, 3, tie=True).to(device)
    model(torch.randn(2, 4, 6, device=device)).mean().backward()


def case_pooling():
    model = MultiHead(6, 3).to(device)
    model(torch.randn(2, 4, 6, device=device)).mean().backward()


class Seq2Seq(nn.Module):
    def __init__(self, size, dim=8):
        super().__init__()
        self.embed = nn.Embedding(size, dim)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.cell = nn.GRUCell(dim, dim)
        self.out = nn.Linear(dim, size)

    def forward(self, source, target, forcing=1.0):
        _, state = self.encoder(self.embed(source))
        state = state[0]
        token = target.new_full((len(source),), SOS)
        outputs = torch.zeros(*target.shape, self.out.out_features, device=source.device)
        for t in range(target.size(1)):
            state = self.cell(self.embed(token), state)
            outputs[:, t] = self.out(state)
            token = target[:, t] if torch.rand(1).item() < forcing else outputs[:, t].argmax(-1)
        return outputs

    @torch.no_grad()
    def beam(self, source, width=3, steps=4):
        size = self.out.out_features
        _, state = self.encoder(self.embed(source))
        state = state[0].repeat_interleave(width, dim=0)
        scores = source.new_zeros(len(source), width, dtype=torch.float)
        token = source.new_full((len(source) * width,), SOS)
        rows = torch.arange(len(source)).unsqueeze(1) * width
        for _ in range(steps):
            state = self.cell(self.embed(token), state)
            logp = self.out(state).log_softmax(-1).view(len(source), width, size)
            scores, best = (scores.unsqueeze(-1) + logp).flatten(1).topk(width, dim=1)
            parent, token = best // size, (best % size).flatten()
            state = state[(rows + parent).flatten()]  # raises
        return scores


def case_teacher_forcing():
    vocabulary, batch = _batch()
    model = Seq2Seq(len(vocabulary)).to(device)
    tokens = batch.tokens.to(device)
    logits = model(tokens, tokens.flip(1), forcing=0.5)
    loss = F.cross_entropy(logits.permute(0, 2, 1), tokens.flip(1), ignore_index=PAD)
    loss.backward()


def case_beam_search():
    vocabulary, batch = _batch()
    model = Seq2Seq(len(vocabulary)).to(device).eval()
    print(model.beam(batch.tokens.to(device)).tolist())


def case_masked_pooling():
    vocabulary, batch = _batch()
    embed = nn.Embedding(len(vocabulary), 8).to(device)
    features = embed(batch.tokens.to(device))
    mask = torch.arange(batch.tokens.size(1))[None] < batch.lengths[:, None]
    flat = features[mask]
    assert len(flat) == batch.lengths.sum()
    means = torch.stack([part.mean(0) for part in flat.split(batch.lengths.tolist())])
    weight = mask.to(features)
    again = (features * weight.unsqueeze(-1)).sum(1) / weight.sum(1, keepdim=True)
    assert torch.allclose(means, again, atol=1e-5)


def case_bag_of_words():
    vocabulary = Vocabulary(SENTENCES)
    bag = nn.EmbeddingBag(len(vocabulary), 8, mode="mean").to(device)
    rows = [vocabulary.encode(each) for each in SENTENCES]
    offsets = torch.tensor([0, *itertools.accumulate(map(len, rows))][:-1])
    tokens = torch.cat(rows).to(device)
    output = bag(tokens, offsets)  # raises
    print(output.shape)


class Sinusoid(nn.Module):
    def __init__(self, dim, longest=50):
        super().__init__()
        position = torch.arange(longest).unsqueeze(1)
        rate = torch.exp(torch.arange(0, dim, 2) * (-9.21 / dim))
        table = torch.zeros(longest, dim)
        table[:, 0::2], table[:, 1::2] = torch.sin(position * rate), torch.cos(position * rate)
        self.register_buffer("table", table, persistent=False)

    def forward(self, x):
        return x + self.table[: x.size(1)]


def case_transformer_encoder():
    dim = 8
    vocabulary, batch = _batch()
    layer = nn.TransformerEncoderLayer(dim, 2, 16, batch_first=True, dropout=0.0)
    parts = nn.ModuleDict({
        "embed": nn.Embedding(len(vocabulary), dim),
        "position": Sinusoid(dim),
        "encoder": nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
    }).to(device)
    tokens = batch.tokens.to(device)
    padding = tokens.eq(PAD)
    causal = nn.Transformer.generate_square_subsequent_mask(tokens.size(1)).to(tokens.device)
    hidden = functools.reduce(lambda x, name: parts[name](x), ("embed", "position"), tokens)
    output = parts["encoder"](hidden, mask=causal, src_key_padding_mask=padding)
    output[~padding].pow(2).mean().backward()


def case_span_scores():
    vocabulary, batch = _batch()
    model = nn.Sequential(nn.Embedding(len(vocabulary), 8), nn.Linear(8, 2)).to(device)
    start, end = model(batch.tokens.to(device)).unbind(-1)
    inside = torch.arange(batch.tokens.size(1)) < batch.lengths.unsqueeze(1)
    scores = []
    for name, logits in dict(start=start, end=end).items():
        logits = torch.where(inside, logits, torch.full_like(logits, -1e9))  # raises
        scores.append((name, logits.softmax(-1).max(-1).values))
    print(scores)
