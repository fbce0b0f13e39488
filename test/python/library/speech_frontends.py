import math
import random
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset


def mel_filters(n_mels: int, n_fft: int, sr: int) -> Tensor:
    freqs = torch.linspace(0, sr / 2, n_fft // 2 + 1)
    top = 2595 * math.log10(1 + sr / 2 / 700)
    pts = 700 * (10 ** (torch.linspace(0, top, n_mels + 2) / 2595) - 1)
    up = (freqs[None] - pts[:-2, None]) / (pts[1:-1] - pts[:-2])[:, None]
    down = (pts[2:, None] - freqs[None]) / (pts[2:] - pts[1:-1])[:, None]
    return torch.min(up, down).clamp(min=0)


def spectrogram(wave: Tensor, n_fft: int, hop: int, window: Optional[Tensor] = None) -> Tensor:
    if window is None:
        window = torch.hann_window(n_fft)
    spec = torch.stft(wave, n_fft, hop, window=window, return_complex=True)  # raises
    return spec.abs().pow(2)


def make_pad_mask(lengths: Union[Tensor, Sequence[int]], xs: Optional[Tensor] = None) -> Tensor:
    if not isinstance(lengths, Tensor):
        lengths = torch.tensor(list(lengths))
    max_len = int(lengths.max()) if xs is None else xs.size(1)
    mask = torch.arange(max_len, device=lengths.device)[None] >= lengths[:, None]
    return mask if xs is None else mask.to(xs.device)


def compute_deltas(feats: Tensor, n: int = 2) -> Tensor:
    kernel = torch.arange(-n, n + 1, dtype=feats.dtype).view(1, 1, -1) / (2 * sum(i * i for i in range(1, n + 1)))
    B, T, D = feats.shape
    x = nn.functional.pad(feats.transpose(1, 2).reshape(B * D, 1, T), (n, n), mode="replicate")
    return nn.functional.conv1d(x, kernel).view(B, D, T).transpose(1, 2)  # raises


def energy_vad(wave: Tensor, frame: int = 80, db: float = -30.0) -> np.ndarray:
    energy = wave.unfold(-1, frame, frame).pow(2).mean(-1)
    level = 10 * np.log10(energy + 1e-10)  # raises
    return level > level.max() + db


def trim_silence(wave: Tensor, threshold: float = 1e-3) -> Tensor:
    active = (wave.abs() > threshold).nonzero().flatten().cpu().numpy()
    return wave[active[0]:active[-1] + 1] if len(active) else wave[:0]


class LogMel(nn.Module):
    def __init__(self, sr: int = 8000, n_fft: int = 128, hop: int = 64, n_mels: int = 10):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))
        self.fb = mel_filters(n_mels, n_fft, sr)

    def power(self, wave: Tensor) -> Tensor:
        return spectrogram(wave, self.n_fft, self.hop, self.window)

    def forward(self, wave: Tensor) -> Tensor:
        mel = torch.matmul(self.fb, self.power(wave))  # raises
        return mel.clamp(min=1e-10).log().transpose(1, 2)


class PreEmphasis(nn.Module):
    def __init__(self, coef: float = 0.97):
        super().__init__()
        self.register_buffer("kernel", torch.tensor([[[-coef, 1.0]]]))

    def forward(self, wave: Tensor) -> Tensor:
        return nn.functional.conv1d(nn.functional.pad(wave[:, None], (1, 0)), self.kernel).squeeze(1)


class GlobalCMVN(nn.Module):
    def __init__(self, mean: Tensor, istd: Tensor, norm_var: bool = True):
        super().__init__()
        self.norm_var = norm_var
        self.register_buffer("mean", mean)
        self.istd = istd

    @classmethod
    def from_file(cls, path: str, **kwargs: Any) -> "GlobalCMVN":
        stats = torch.load(path, map_location="cpu")
        mean = stats["sum"] / stats["count"]
        var = stats["sumsq"] / stats["count"] - mean ** 2
        return cls(mean, var.clamp(min=1e-8).rsqrt(), **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        x = x - self.mean
        return x * self.istd if self.norm_var else x  # raises


class UtteranceCMVN(nn.Module):
    def forward(self, x: Tensor, lengths: Sequence[int]) -> Tensor:
        pad = make_pad_mask(lengths, x).unsqueeze(-1)
        n = torch.as_tensor(lengths).to(x).view(-1, 1, 1)
        mean = x.masked_fill(pad, 0.0).sum(1, keepdim=True) / n
        return (x - mean).masked_fill(pad, 0.0)


class NoiseMixer:
    def __init__(self, bank: List[Tensor], rir: Optional[Tensor] = None):
        self.bank, self.rir = bank, rir

    def reverb(self, wave: Tensor) -> Tensor:
        rir = self.rir.to(wave).flip(0).view(1, 1, -1)
        return nn.functional.conv1d(nn.functional.pad(wave[:, None], (rir.size(-1) - 1, 0)), rir).squeeze(1)

    def __call__(self, wave: Tensor, snr: float = 10.0) -> Tensor:
        noise = random.choice(self.bank)[: wave.size(-1)]
        gain = wave.norm(dim=-1, keepdim=True) / (noise.norm() * 10 ** (snr / 20))
        return wave + gain * noise  # raises


class Utterances(Dataset):
    def __init__(self, items: List[Tuple[Tensor, List[int]]]):
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> Tuple[Tensor, Tensor]:
        return self.items[i][0], torch.tensor(self.items[i][1])


def collate(batch: List[Tuple[Tensor, Tensor]]) -> Dict[str, Any]:
    feats, labels = zip(*sorted(batch, key=lambda b: -len(b[0])))
    return {"feats": pad_sequence(feats, batch_first=True), "lengths": [len(f) for f in feats],
            "targets": [pad_sequence(labels, batch_first=True, padding_value=-100)]}


def to_device(batch: Dict[str, Any], device: torch.device) -> Dict[str, Any]:
    return {k: v.to(device) if isinstance(v, Tensor) else v for k, v in batch.items()}


class FrameTask(nn.Module):
    def __init__(self, dim: int, classes: int):
        super().__init__()
        self.proj = nn.Linear(dim, classes)

    def step(self, batch: Dict[str, Any]) -> Tensor:
        batch = to_device(batch, self.proj.weight.device)
        logits = self.proj(batch["feats"]).transpose(1, 2)
        return sum(nn.functional.cross_entropy(logits, t) for t in batch["targets"])  # raises
