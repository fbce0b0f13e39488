"""End-to-end speech recognition: front ends, encoders, losses and decoders."""
import math
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


@dataclass
class FrontendConfig:
    sample_rate: int = 1600
    n_fft: int = 32
    hop: int = 16
    n_mels: int = 8
    preemphasis: float = 0.97


@dataclass
class SpeechConfig:
    frontend: FrontendConfig = field(default_factory=FrontendConfig)
    width: int = 8
    heads: int = 2
    vocabulary: int = 6
    blank: int = 0
    eos: int = 5
    left_context: int = 2


class Hypothesis(NamedTuple):
    tokens: List[int]
    score: float
    state: Any = None


def mel_matrix(config: FrontendConfig) -> np.ndarray:
    bins = np.linspace(0, config.sample_rate / 2, config.n_fft // 2 + 1)
    edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + bins[-1] / 700), config.n_mels + 2) / 2595) - 1)
    rise = (bins[:, None] - edges[None, :-2]) / (edges[1:-1] - edges[:-2])
    fall = (edges[None, 2:] - bins[:, None]) / (edges[2:] - edges[1:-1])
    return np.maximum(0, np.minimum(rise, fall)).astype(np.float32)


def length_mask(lengths: torch.Tensor, longest: Optional[int] = None) -> torch.Tensor:
    longest = int(lengths.max()) if longest is None else longest
    return torch.arange(longest, device=lengths.device)[None] >= lengths[:, None]


def move_batch(batch: Any, device) -> Any:
    if torch.is_tensor(batch):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {key: move_batch(value, device) for key, value in batch.items()}
    if isinstance(batch, list):
        return [move_batch(value, device) for value in batch]
    return batch


class SpeechCollator:
    """Utterances sorted by length; waves and lengths, and the pair of padded targets and their lengths."""

    def __init__(self, padding: int = -1):
        self.padding = padding

    def __call__(self, items: Sequence[Tuple[np.ndarray, List[int]]]) -> Dict[str, Any]:
        items = sorted(items, key=lambda item: -len(item[0]))
        waves = [torch.from_numpy(wave) for wave, _ in items]
        tokens = [torch.tensor(text) for _, text in items]
        return {
            "waves": pad_sequence(waves, batch_first=True),
            "lengths": torch.tensor([len(wave) for wave in waves]),
            "texts": (pad_sequence(tokens, batch_first=True, padding_value=self.padding),
                      torch.tensor([len(text) for text in tokens])),
        }


class Frontend(nn.Module):
    """(B, samples) to (B, frames, features); lengths go along."""

    def __init__(self, config: FrontendConfig):
        super().__init__()
        self.config = config

    def emphasize(self, waves: torch.Tensor) -> torch.Tensor:
        return torch.cat((waves[:, :1], waves[:, 1:] - self.config.preemphasis * waves[:, :-1]), 1)

    def frames(self, lengths: torch.Tensor) -> torch.Tensor:
        return torch.div(lengths, self.config.hop, rounding_mode="floor") + 1

    def extract(self, waves: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def forward(self, waves: torch.Tensor, lengths: torch.Tensor):
        return self.extract(self.emphasize(waves)), self.frames(lengths)


class MelFrontend(Frontend):
    def __init__(self, config: FrontendConfig):
        super().__init__(config)
        self.register_buffer("window", torch.hann_window(config.n_fft))
        self.register_buffer("mel", torch.from_numpy(mel_matrix(config)))

    def power(self, waves: torch.Tensor) -> torch.Tensor:
        spectrum = torch.stft(waves, self.config.n_fft, self.config.hop, window=self.window, return_complex=True)
        return spectrum.abs().pow(2).transpose(1, 2)

    def extract(self, waves: torch.Tensor) -> torch.Tensor:
        return (self.power(waves) @ self.mel).clamp_min(1e-6).log()


class CepstralFrontend(MelFrontend):
    def __init__(self, config: FrontendConfig, kept: int = 6):
        super().__init__(config)
        angle = math.pi / config.n_mels * (torch.arange(config.n_mels) + 0.5)[:, None] * torch.arange(kept)
        self.transform = torch.cos(angle) * math.sqrt(2 / config.n_mels)

    def extract(self, waves: torch.Tensor) -> torch.Tensor:
        return torch.matmul(super().extract(waves), self.transform)  # raises


class SpecAugment(nn.Module):
    def __init__(self, max_width: int = 3):
        super().__init__()
        self.max_width = max_width

    def bands(self, spectra: torch.Tensor) -> torch.Tensor:
        out = spectra.clone()
        starts = torch.randint(0, spectra.shape[-1] - self.max_width, (spectra.shape[0],))
        for row, start in zip(out, starts):
            row[:, start:start + self.max_width] = 0
        return out

    def stripes(self, spectra: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        limit = (lengths - self.max_width).clamp_min(1)
        start = (torch.rand(len(lengths)) * limit.cpu()).long()[:, None]
        step = torch.arange(spectra.shape[1], device=spectra.device)[None]
        hidden = (step >= start) & (step < start + self.max_width)  # raises
        return spectra.masked_fill(hidden[..., None], 0.0)

    def forward(self, spectra: torch.Tensor) -> torch.Tensor:
        return self.bands(spectra) if self.training else spectra


class Encoder(nn.Module):
    def __init__(self, config: SpeechConfig, inputs: Optional[int] = None):
        super().__init__()
        self.config = config
        self.project = nn.Linear(inputs or config.frontend.n_mels, config.width)
        self.out = nn.Linear(config.width, config.vocabulary)

    def encode(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def forward(self, spectra: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return self.out(self.encode(self.project(spectra), lengths)).log_softmax(-1)


class RecurrentEncoder(Encoder):
    def __init__(self, config: SpeechConfig, inputs: Optional[int] = None):
        super().__init__(config, inputs)
        self.rnn = nn.LSTM(config.width, config.width // 2, bidirectional=True, batch_first=True)

    def encode(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0]


class PyramidEncoder(RecurrentEncoder):
    """Halves the frame rate before the recurrent layer."""

    def encode(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        x = x[:, :x.shape[1] // 2 * 2].unflatten(1, (-1, 2)).mean(2)
        halved = torch.div(lengths, 2, rounding_mode="trunc").clamp_min(1)
        packed = pack_padded_sequence(x, halved, batch_first=True, enforce_sorted=False)  # raises
        return pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0]


class AttentionEncoder(Encoder):
    """One self-attention layer with sinusoidal positions that grow when needed."""

    def __init__(self, config: SpeechConfig, inputs: Optional[int] = None):
        super().__init__(config, inputs)
        self.attention = nn.MultiheadAttention(config.width, config.heads, batch_first=True)
        self.pe: Optional[torch.Tensor] = None

    def positions(self, x: torch.Tensor) -> torch.Tensor:
        if self.pe is None or self.pe.shape[0] < x.shape[1] or self.pe.device != x.device:
            place = torch.arange(x.shape[1], dtype=torch.float)[:, None]
            rate = torch.exp(-math.log(1e4) / x.shape[2] * torch.arange(0, x.shape[2], 2))
            self.pe = torch.cat((torch.sin(place * rate), torch.cos(place * rate)), 1).to(x)
        return self.pe[:x.shape[1]]

    def encode(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        padding = length_mask(lengths, x.shape[1]).to(x.device)
        x = x + self.positions(x)
        return self.attention(x, x, x, key_padding_mask=padding, need_weights=False)[0]

    def pooled(self, spectra: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        hidden = self.encode(self.project(spectra), lengths)
        padding = length_mask(lengths.cpu(), hidden.shape[1])
        return hidden.masked_fill(padding[..., None], float("-inf")).amax(1)  # raises


class AlibiEncoder(Encoder):
    def __init__(self, config: SpeechConfig, inputs: Optional[int] = None):
        super().__init__(config, inputs)
        self.slopes = [2.0 ** -(8 * (head + 1) / config.heads) for head in range(config.heads)]

    def bias(self, steps: int) -> torch.Tensor:
        distance = (torch.arange(steps)[:, None] - torch.arange(steps)[None]).abs()
        return -torch.tensor(self.slopes).view(-1, 1, 1) * distance

    def encode(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        keys = x.unflatten(-1, (self.config.heads, -1)).transpose(1, 2).flatten(0, 1)
        bias = self.bias(x.shape[1]).repeat(x.shape[0], 1, 1)
        scores = torch.baddbmm(bias, keys, keys.transpose(1, 2), alpha=keys.shape[-1] ** -0.5)  # raises
        mixed = scores.softmax(-1) @ keys
        return mixed.unflatten(0, (x.shape[0], -1)).transpose(1, 2).flatten(2)


class StreamingEncoder(Encoder):
    """Causal convolution over chunks; the last frames of a chunk are the left context of the next."""

    def __init__(self, config: SpeechConfig, inputs: Optional[int] = None):
        super().__init__(config, inputs)
        self.conv = nn.Conv1d(config.width, config.width, config.left_context + 1)
        self.contexts: Dict[str, torch.Tensor] = {}

    def start(self, batch: int, dtype=torch.float32) -> torch.Tensor:
        return torch.zeros(batch, self.config.width, self.config.left_context, dtype=dtype)

    def encode(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        padded = F.pad(x.transpose(1, 2), (self.config.left_context, 0))
        return self.conv(padded).transpose(1, 2)

    def step(self, chunk: torch.Tensor, context: Optional[torch.Tensor] = None):
        x = self.project(chunk).transpose(1, 2)
        context = self.start(x.shape[0]).to(x) if context is None else context
        x = torch.cat((context, x), -1)
        return self.out(self.conv(x).transpose(1, 2)), x[..., -self.config.left_context:]

    def step_session(self, session: str, chunk: torch.Tensor) -> torch.Tensor:
        x = self.project(chunk).transpose(1, 2)
        x = torch.cat((self.contexts.setdefault(session, self.start(x.shape[0], x.dtype)), x), -1)  # raises
        self.contexts[session] = x[..., -self.config.left_context:].detach()
        return self.out(self.conv(x).transpose(1, 2))


class SpeechModel(nn.Module):
    def __init__(self, config: SpeechConfig, frontend: Frontend, encoder: Encoder):
        super().__init__()
        self.config, self.frontend, self.encoder = config, frontend, encoder
        self.augment = SpecAugment()

    def forward(self, batch: Dict[str, Any]) -> Tuple[torch.Tensor, torch.Tensor]:
        spectra, lengths = self.frontend(batch["waves"], batch["lengths"])
        return self.encoder(self.augment(spectra), lengths), lengths

    def ctc_loss(self, batch: Dict[str, Any]) -> torch.Tensor:
        log_probs, lengths = self(batch)
        tokens, sizes = batch["texts"]
        tokens = tokens.clamp_min(0).to(log_probs.device)
        return F.ctc_loss(log_probs.transpose(0, 1), tokens, lengths.tolist(), sizes.tolist(), self.config.blank)

    def frame_loss(self, batch: Dict[str, Any]) -> torch.Tensor:
        log_probs, _ = self(batch)
        tokens, _ = batch["texts"]
        pieces = tokens.repeat_interleave(math.ceil(log_probs.shape[1] / tokens.shape[1]), 1)
        return F.nll_loss(log_probs.transpose(1, 2), pieces[:, :log_probs.shape[1]], ignore_index=-1)  # raises


class CTCDecoder:
    """Greedy decoding, with an optional prior of the tokens taken off the scores."""

    def __init__(self, config: SpeechConfig, prior: Optional[Sequence[float]] = None):
        self.config = config
        self.log_prior = None if prior is None else np.log(np.asarray(prior, dtype=np.float32))

    def rescored(self, log_probs: torch.Tensor) -> torch.Tensor:
        if self.log_prior is None:
            return log_probs
        return log_probs - log_probs.new_tensor(self.log_prior)

    def greedy(self, log_probs: torch.Tensor, lengths: torch.Tensor) -> List[List[int]]:
        best = self.rescored(log_probs).argmax(-1)
        return [self.collapse(row[:length]) for row, length in zip(best, lengths)]

    def collapse(self, row: torch.Tensor) -> List[int]:
        merged = torch.unique_consecutive(row)
        return merged[merged != self.config.blank].tolist()

    def confidences(self, log_probs: torch.Tensor) -> List[float]:
        posterior = log_probs.exp()
        spoken = np.ma.masked_less(posterior.max(-1).values.mean(-1).cpu().numpy(), 0.0)
        return spoken.tolist()

    def blank_share(self, log_probs: torch.Tensor, lengths: torch.Tensor) -> np.ndarray:
        silent = (log_probs.argmax(-1) == self.config.blank) & ~length_mask(lengths, log_probs.shape[1])
        return np.true_divide(silent.sum(-1).tolist(), np.array(lengths))  # raises


class TokenModel(nn.Module):
    """Language model for shallow fusion; scores the next token of one hypothesis."""

    def __init__(self, config: SpeechConfig):
        super().__init__()
        self.embed = nn.Embedding(config.vocabulary, config.width)
        self.cell = nn.LSTMCell(config.width, config.width)
        self.out = nn.Linear(config.width, config.vocabulary)

    def step(self, last: torch.Tensor, state=None):
        state = self.cell(self.embed(last), state)
        return self.out(state[0]).log_softmax(-1), state

    def advance(self, hypothesis: Hypothesis) -> Tuple[torch.Tensor, Any]:
        last = torch.tensor(hypothesis.tokens[-1:], device=self.out.weight.device)
        scores, state = self.step(last, hypothesis.state)
        return scores[0], state

    def perplexity(self, tokens: List[int]) -> float:
        text = torch.tensor(tokens)
        logits = self.out(self.embed(text[:-1]))  # raises
        return F.cross_entropy(logits, text[1:].to(logits.device)).exp().item()


class BeamSearch:
    def __init__(self, config: SpeechConfig, model: TokenModel, beam: int = 2):
        self.config, self.model, self.beam = config, model, beam

    def expand(self, beams: List[Hypothesis]) -> Tuple[torch.Tensor, List[Any]]:
        scored = [self.model.advance(each) for each in beams]
        return torch.stack([scores for scores, _ in scored]), [state for _, state in scored]

    @torch.no_grad()
    def search(self, steps: int) -> Hypothesis:
        beams = [Hypothesis([self.config.eos], 0.0)]
        for _ in range(steps):
            scores, states = self.expand(beams)
            total = scores + scores.new_tensor([each.score for each in beams])[:, None]
            values, flat = total.flatten().topk(self.beam)
            beams = [Hypothesis(beams[i // self.config.vocabulary].tokens + [i % self.config.vocabulary], value,
                                states[i // self.config.vocabulary]) for value, i in zip(values.tolist(), flat.tolist())]
        return max(beams, key=lambda each: each.score)

    @torch.no_grad()
    def fuse(self, beams: List[Hypothesis], acoustic: torch.Tensor, weight: float = 0.3) -> List[int]:
        language, _ = self.expand(beams)
        so_far = torch.tensor([each.score for each in beams]).unsqueeze(1)
        total = torch.add(acoustic + weight * language, so_far)  # raises
        return total.flatten().topk(self.beam).indices.tolist()


class SpeechEnsemble:
    """Encoders on several GPUs whose posteriors are averaged."""

    def __init__(self, encoders: List[Encoder]):
        self.encoders = [encoder.to(f"cuda:{i % torch.cuda.device_count()}") for i, encoder in enumerate(encoders)]

    def _each(self, spectra: torch.Tensor, lengths: torch.Tensor) -> List[torch.Tensor]:
        homes = [encoder.out.weight.device for encoder in self.encoders]
        return [encoder(spectra.to(home), lengths) for home, encoder in zip(homes, self.encoders)]

    def log_probs(self, spectra: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        gathered = torch.stack([each.to(spectra.device) for each in self._each(spectra, lengths)])
        return gathered.logsumexp(0) - math.log(len(self.encoders))

    def spread(self, spectra: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return torch.stack(self._each(spectra, lengths)).var(0)  # raises

    def average(self) -> "OrderedDict[str, torch.Tensor]":
        states = [encoder.state_dict() for encoder in self.encoders]
        return OrderedDict((key, sum(state[key].cpu() for state in states) / len(states)) for key in states[0])
