"""Utilities around a small CTC / attention speech recognizer: features, augmentation, decoding, training steps."""
import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class FrontendConfig:
    sample_rate: int = 8000
    n_fft: int = 32
    hop: int = 16
    n_mels: int = 6
    device: str = "cpu"


@dataclass
class Batch:
    feats: torch.Tensor
    feat_lens: torch.Tensor
    tokens: torch.Tensor
    token_lens: torch.Tensor
    meta: Dict[str, str] = field(default_factory=dict)

    def to(self, device):
        return Batch(self.feats.to(device), self.feat_lens.to(device), self.tokens.to(device), self.token_lens.to(device), self.meta)

    def move_audio(self, device):
        """Only what the acoustic model reads; the targets stay for the scorer."""
        self.feats = self.feats.to(device)
        self.feat_lens = self.feat_lens.to(device)
        return self


def length_to_mask(lengths: torch.Tensor, max_len: Optional[int] = None) -> torch.Tensor:
    max_len = max_len or int(lengths.max().item())
    steps = torch.arange(max_len, device=lengths.device)
    return steps.unsqueeze(0) < lengths.unsqueeze(1)


def subsequent_mask(size):
    return torch.tril(torch.ones(size, size, dtype=torch.bool))


def mel_filters(n_mels, n_bins):
    grid = torch.linspace(0, 1, n_bins).unsqueeze(0)
    centers = torch.linspace(0.1, 0.9, n_mels).unsqueeze(1)
    return (1 - (grid - centers).abs() * n_mels).clamp(min=0)


def fake_batch(n=2, frames=12, dim=6, vocab=10):
    return Batch(
        feats=torch.randn(n, frames, dim),
        feat_lens=torch.tensor([frames, frames - 3]),
        tokens=torch.randint(1, vocab, (n, 4)),
        token_lens=torch.tensor([4, 3]),
    )


class Spectrogram(nn.Module):
    def __init__(self, cfg: FrontendConfig):
        super().__init__()
        self.cfg = cfg
        self.register_buffer("window", torch.hann_window(cfg.n_fft), persistent=False)
        self.register_buffer("mel", mel_filters(cfg.n_mels, cfg.n_fft // 2 + 1), persistent=False)

    def forward(self, wave):
        spec = torch.stft(wave, self.cfg.n_fft, self.cfg.hop, window=self.window, return_complex=True)
        power = spec.abs().pow(2)
        return torch.matmul(self.mel, power).clamp(min=1e-6).log().transpose(1, 2)


class SpectrogramPlain(nn.Module):
    """Same as above before we had buffers."""

    def __init__(self, cfg: FrontendConfig):
        super().__init__()
        self.cfg = cfg
        self.register_buffer("window", torch.hann_window(cfg.n_fft), persistent=False)
        self.mel = mel_filters(cfg.n_mels, cfg.n_fft // 2 + 1)

    def forward(self, wave):
        spec = torch.stft(wave, self.cfg.n_fft, self.cfg.hop, window=self.window, return_complex=True)
        power = spec.abs().pow(2)
        mels = torch.matmul(self.mel, power)  # raises
        return mels.clamp(min=1e-6).log().transpose(1, 2)


class GlobalCMVN(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("istd", torch.ones(dim))

    @classmethod
    def from_stats(cls, stats: Dict[str, np.ndarray]):
        self = cls(len(stats["mean"]))
        self.mean = torch.from_numpy(stats["mean"]).float()
        self.istd = 1.0 / torch.from_numpy(stats["std"]).float()
        return self

    def forward(self, x):
        centered = x - self.mean  # raises
        return centered * self.istd


class Encoder(nn.Module):
    def __init__(self, dim=6, hidden=8):
        super().__init__()
        self.proj = nn.Linear(dim, hidden)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)

    def forward(self, x, mask=None):
        h = torch.relu(self.proj(x))
        if mask is not None:
            h = h.masked_fill(~mask.unsqueeze(-1), 0.0)
        out, _ = self.rnn(h)
        return out


class CTCModel(nn.Module):
    def __init__(self, dim=6, hidden=8, vocab=10):
        super().__init__()
        self.encoder = Encoder(dim, hidden)
        self.head = nn.Linear(hidden, vocab)

    def forward(self, batch: Batch):
        mask = length_to_mask(batch.feat_lens, batch.feats.size(1))
        return self.head(self.encoder(batch.feats, mask)).log_softmax(-1)


class SpecAugment:
    """Not a module on purpose: used from the dataset as well."""

    def __init__(self, width=3, fill="mean"):
        self.width = width
        self.fill = fill

    def _time_mask(self, x):
        start = int(torch.randint(0, x.size(1) - self.width, (1,)))
        mask = torch.zeros(x.size(1), dtype=torch.bool)
        mask[start:start + self.width] = True
        return mask

    def __call__(self, x):
        x = x.clone()
        mask = self._time_mask(x)
        if self.fill == "mean":
            x[:, mask] = x.mean()
            return x
        keep = (~mask).to(x.dtype).view(1, -1, 1)
        return x * keep  # raises


class TokenLM(nn.Module):
    def __init__(self, vocab=10, dim=8):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.out = nn.Linear(dim, vocab)
        self._pe_cache: Dict[Tuple[int, torch.device], torch.Tensor] = {}

    def positions(self, length, device):
        key = (length, device)
        if key not in self._pe_cache:
            pos = torch.arange(length, dtype=torch.float32).unsqueeze(1)
            freq = torch.exp(torch.arange(0, self.emb.embedding_dim, 2).float() * -(math.log(100.0) / self.emb.embedding_dim))
            pe = torch.cat([torch.sin(pos * freq), torch.cos(pos * freq)], dim=1)
            self._pe_cache[key] = pe.to(device)
        return self._pe_cache[key]

    def forward(self, tokens):
        x = self.emb(tokens)
        x = x + self.positions(tokens.size(1), tokens.device)
        return self.out(x)


class LengthKeyedLM(TokenLM):
    def positions(self, length, device):
        if length not in self._pe_cache:
            self._pe_cache[length] = torch.zeros(length, self.emb.embedding_dim, device=device)
        return self._pe_cache[length]

    def forward(self, tokens):
        x = self.emb(tokens)
        pe = self.positions(tokens.size(1), tokens.device)
        return self.out(x + pe)  # raises


class PrefixBeam:
    def __init__(self, beam, vocab, device="cpu"):
        self.beam = beam
        self.vocab = vocab
        self.device = torch.device(device)
        self.reset()

    def reset(self):
        self.scores = torch.full((self.beam,), -1e4, device=self.device)
        self.scores[0] = 0.0
        self.tokens = torch.zeros(self.beam, 1, dtype=torch.long, device=self.device)

    def step(self, logp):
        total = self.scores.unsqueeze(1) + logp.unsqueeze(0)
        top, idx = total.view(-1).topk(self.beam)
        parents = torch.div(idx, self.vocab, rounding_mode="floor")
        self.tokens = torch.cat([self.tokens[parents], (idx % self.vocab).unsqueeze(1)], dim=1)
        self.scores = top
        return self

    def best(self):
        return self.tokens[self.scores.argmax()].tolist()


class LexiconBeam(PrefixBeam):
    """Adds a per token bonus."""

    def __init__(self, beam, vocab, bonus: List[float], **kwargs):
        super().__init__(beam, vocab, **kwargs)
        self.bonus = torch.tensor(bonus)

    def step(self, logp):
        boosted = logp + self.bonus  # raises
        return super().step(boosted)


def greedy(logp):
    path = logp.argmax(-1)
    out = []
    for row in path:
        collapsed = torch.unique_consecutive(row)
        out.append(collapsed[collapsed != 0].tolist())
    return out


def case_spectrogram_buffers():
    cfg = FrontendConfig(device="cuda")
    front = Spectrogram(cfg).to(cfg.device)
    wave = torch.randn(2, 128, device=cfg.device)
    feats = front(wave)
    assert feats.size(-1) == cfg.n_mels
    return feats.mean().item()


def case_spectrogram_plain_filters():
    cfg = FrontendConfig(device="cuda")
    front = SpectrogramPlain(cfg).to(cfg.device)
    batch = torch.stack([torch.randn(128) for _ in range(2)]).to(cfg.device)
    return front(batch)


def case_cmvn_stats_before_cuda():
    stats = {"mean": np.zeros(6, dtype=np.float32), "std": np.full(6, 2.0, dtype=np.float32)}
    net = nn.Sequential(GlobalCMVN.from_stats(stats), Encoder()).cuda()
    return net(torch.randn(2, 5, 6).cuda()).shape


def case_cmvn_replaced_after_cuda():
    net = nn.Sequential(GlobalCMVN(6), Encoder()).cuda()
    feats = torch.randn(2, 5, 6, device="cuda")
    before = net(feats)
    stats = {"mean": feats.mean((0, 1)).cpu().numpy(), "std": feats.std((0, 1)).cpu().numpy()}
    net[0] = GlobalCMVN.from_stats(stats)
    return before, net(feats)


def case_specaugment_mean_fill():
    x = torch.randn(2, 10, 6, device="cuda")
    aug = SpecAugment(width=2)
    return aug(x).sum().item()


def case_specaugment_zero_fill():
    augmenters = {"clean": lambda t: t, "zero": SpecAugment(2, fill="zero")}
    x = torch.randn(2, 10, 6)
    x = augmenters["zero"](x)
    x = x.cuda()
    for name in ("clean", "zero"):
        x = augmenters[name](x)
    return x


def case_ctc_train_step_audio_moved():
    device = torch.device("cuda", 0)
    model = CTCModel().to(device)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    batch = fake_batch().move_audio(device)
    logp = model(batch).transpose(0, 1)
    # the scorer reads the lengths on the host
    loss = F.ctc_loss(logp, batch.tokens.to(device), batch.feat_lens.cpu(), batch.token_lens)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return float(loss)


def case_frame_accuracy_targets_left():
    device = torch.device("cuda", 0)
    model = CTCModel().to(device)
    batch = fake_batch().move_audio(device)
    with torch.no_grad():
        best = model(batch)[:, :4].argmax(-1)
    valid = length_to_mask(batch.token_lens)
    hits = (best == batch.tokens)  # raises
    return hits[valid].float().mean().item()


def case_lm_position_cache_by_device():
    lm = TokenLM().to("cuda:0")
    tokens = torch.randint(0, 10, (2, 5))
    a = lm(tokens.to("cuda:0"))
    lm.to("cuda:1")
    b = lm(tokens.to("cuda:1"))
    return a.cpu() - b.cpu()


def case_lm_position_cache_by_length():
    lm = LengthKeyedLM()
    tokens = torch.randint(0, 10, (2, 5))
    warm = lm(tokens)
    lm = lm.to("cuda:0")
    scores = lm(tokens.to("cuda:0"))
    return warm, scores


def case_beam_search_on_host_scores():
    model = CTCModel().cuda().eval()
    batch = fake_batch().to("cuda")
    with torch.no_grad():
        logp = model(batch)[0].cpu()
    beam = PrefixBeam(3, 10)
    for frame in logp:
        beam.step(frame)
    return beam.best()


def case_lexicon_beam_on_gpu():
    model = CTCModel().cuda().eval()
    batch = fake_batch().to("cuda")
    with torch.no_grad():
        logp = model(batch)[0]
    beam = LexiconBeam(3, 10, bonus=[0.0] * 9 + [0.5], device=logp.device)
    for frame in logp:
        beam.step(frame)
    return beam.best()


def case_collect_hypotheses():
    buckets = defaultdict(list)
    model = CTCModel().to("cuda:2")
    for length in (8, 10):
        batch = fake_batch(frames=length).to("cuda:2")
        out = model(batch)
        for hyp, ref in zip(greedy(out), batch.tokens):
            buckets[length].append((hyp, ref.cpu().numpy()))
    return {k: len(v) for k, v in buckets.items()}
