# Tiny residual-VQ audio codec: framing, quantisers, streaming, discriminators, bit packing.
import math
import typing as tp
from collections import deque

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def get_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def hann(n, periodic=True, **kwargs):
    return torch.hann_window(n, periodic=periodic, **kwargs)


def mel_filterbank(n_freqs: int, n_mels: int, sr: int) -> torch.Tensor:
    freqs = torch.linspace(0, sr // 2, n_freqs)
    pts = 700 * (10 ** (torch.linspace(0, 2595 * math.log10(1 + sr / 1400), n_mels + 2) / 2595) - 1)
    diff = pts[1:] - pts[:-1]
    slopes = pts.unsqueeze(0) - freqs.unsqueeze(1)
    down = -slopes[:, :-2] / diff[:-1]
    up = slopes[:, 2:] / diff[1:]
    return torch.clamp(torch.min(down, up), min=0.0)


def sine(freq=440.0, seconds=0.02, sr=8000, device=None):
    t = torch.arange(int(seconds * sr), device=device) / sr
    return torch.sin(2 * math.pi * freq * t).view(1, 1, -1)


class Spectrogram(nn.Module):
    def __init__(self, n_fft=16, hop=8):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", hann(n_fft))

    def forward(self, wav):
        spec = torch.stft(wav.squeeze(1), self.n_fft, self.hop, window=self.window, return_complex=True)
        return spec.abs()


class MelSpectrogram(nn.Module):
    def __init__(self, n_mels=4, sr=8000, **kw):
        super().__init__()
        self.spec = Spectrogram(**kw)
        self.fb = mel_filterbank(self.spec.n_fft // 2 + 1, n_mels, sr)

    def forward(self, wav):
        mag = self.spec(wav)
        return torch.matmul(mag.transpose(1, 2), self.fb).transpose(1, 2)  # raises


class MelSpectrogramV2(MelSpectrogram):
    def __init__(self, *args, **kw):
        super().__init__(*args, **kw)
        fb = self.fb
        del self.fb
        self.register_buffer("fb", fb)

    def forward(self, wav):
        return self.fb.t() @ self.spec(wav)


def case_mel_reconstruction_loss():
    device = get_device()
    mel = MelSpectrogram().to(device)
    x = sine(device=device)
    y = x + 0.01 * torch.randn_like(x)
    return F.l1_loss(mel(x), mel(y)).item()


def case_mel_reconstruction_loss_v2():
    device = get_device()
    mel = MelSpectrogramV2().to(device)
    x = sine(device=device)
    y = x + 0.01 * torch.randn_like(x)
    return F.l1_loss(mel(x), mel(y)).item()


class MultiScaleSTFT:
    """Not a module on purpose: nothing to learn, so nothing to move."""

    def __init__(self, sizes=(8, 16)):
        self.sizes = sizes
        self._windows: tp.Dict[int, torch.Tensor] = {}

    def window(self, n, like):
        if n not in self._windows:
            self._windows[n] = hann(n, device=like.device, dtype=like.dtype)
        return self._windows[n]

    def __call__(self, x):
        for n in self.sizes:
            yield torch.stft(x.squeeze(1), n, n // 2, window=self.window(n, x), return_complex=True)  # raises


def stft_distance(ms, a, b):
    out = []
    for sa, sb in zip(ms(a), ms(b)):
        out.append((sa.abs() - sb.abs()).pow(2).mean())
    return sum(out) / len(out)


def case_validation_on_host_then_train():
    ms = MultiScaleSTFT()
    wav = sine(220.0)
    baseline = stft_distance(ms, wav, wav * 0.5)
    gpu = wav.to(get_device())
    return float(baseline), float(stft_distance(ms, gpu, gpu * 0.5))


def case_stft_distance_train_only():
    ms = MultiScaleSTFT((8,))
    wav = sine(220.0).to(get_device())
    first = stft_distance(ms, wav, wav * 0.5)
    return float(first), float(stft_distance(ms, wav, wav * 0.9))


# --------------------------------------------------------------------------------------------------------------
# quantisation

def ema_inplace(moving_avg, new, decay: float):
    moving_avg.data.mul_(decay).add_(new, alpha=1 - decay)


def sample_vectors(samples, num: int):
    n = samples.shape[0]
    if n >= num:
        idx = torch.randperm(n)[:num]
    else:
        idx = torch.randint(0, n, (num,), device=samples.device)
    return samples[idx]


def kmeans(samples, num_clusters: int, iters: int = 2):
    means = sample_vectors(samples, num_clusters)
    for _ in range(iters):
        buckets = torch.cdist(samples, means).argmin(-1)
        bins = torch.bincount(buckets, minlength=num_clusters)
        new = means.new_zeros(num_clusters, samples.shape[-1])
        new.scatter_add_(0, buckets[:, None].expand_as(samples), samples)
        means = torch.where((bins == 0)[:, None], means, new / bins.clamp(min=1)[:, None])
    return means, bins


class EuclideanCodebook(nn.Module):
    def __init__(self, dim, size, kmeans_init=False, decay=0.9, threshold=0):
        super().__init__()
        self.decay, self.size, self.threshold = decay, size, threshold
        embed = torch.zeros(size, dim) if kmeans_init else torch.randn(size, dim)
        self.register_buffer("inited", torch.tensor([not kmeans_init]))
        self.register_buffer("cluster_size", torch.zeros(size))
        self.register_buffer("embed", embed)
        self.register_buffer("embed_avg", embed.clone())

    def init_embed_(self, data):
        if self.inited:
            return
        embed, sizes = kmeans(data, self.size)
        self.embed.data.copy_(embed)
        self.embed_avg.data.copy_(embed)
        self.cluster_size.data.copy_(sizes)
        self.inited.data.copy_(torch.Tensor([True]))

    def expire_codes_(self, batch):
        if self.threshold == 0:
            return
        expired = self.cluster_size < self.threshold
        if not torch.any(expired):
            return
        fresh = sample_vectors(batch, self.size)
        self.embed.data.copy_(torch.where(expired[..., None], fresh, self.embed))

    def quantize(self, x):
        dist = -(x.pow(2).sum(1, keepdim=True) - 2 * x @ self.embed.t() + self.embed.t().pow(2).sum(0, keepdim=True))
        return dist.max(dim=-1).indices

    def decode(self, codes):
        return F.embedding(codes, self.embed)  # raises

    def forward(self, x):
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        self.init_embed_(x)
        codes = self.quantize(x)
        onehot = F.one_hot(codes, self.size).type(x.dtype)
        if self.training:
            self.expire_codes_(x)
            ema_inplace(self.cluster_size, onehot.sum(0), self.decay)
            ema_inplace(self.embed_avg, onehot.t() @ x, self.decay)
            smoothed = (self.cluster_size + 1e-5) / (self.cluster_size.sum() + self.size * 1e-5) * self.cluster_size.sum()
            self.embed.data.copy_(self.embed_avg / smoothed.unsqueeze(1))
        return self.decode(codes).view(shape), codes.view(shape[:-1])


class ResidualVQ(nn.Module):
    def __init__(self, n_q, **kw):
        super().__init__()
        self.layers = nn.ModuleList([EuclideanCodebook(**kw) for _ in range(n_q)])

    def forward(self, x, n_q: tp.Optional[int] = None):
        out, residual, all_codes = torch.zeros_like(x), x, []
        for layer in self.layers[: n_q or len(self.layers)]:
            q, codes = layer(residual)
            residual = residual - q.detach()
            out = out + q
            all_codes.append(codes)
        return x + (out - x).detach(), torch.stack(all_codes)

    def decode(self, codes):
        return sum(layer.decode(c) for layer, c in zip(self.layers, codes))


def case_rvq_kmeans_training_step():
    device = get_device()
    rvq = ResidualVQ(2, dim=4, size=3, kmeans_init=True, threshold=1).to(device).train()
    x = torch.randn(2, 5, 4, device=device)
    for _ in range(2):
        out, codes = rvq(x)
    return out.shape, codes.shape


class BitPacker:
    """Packs codes of `bits` bits into bytes, as the stream format wants it."""

    def __init__(self, bits: int):
        self.bits = bits
        self.shifts = torch.arange(bits)

    def pack(self, codes: torch.Tensor) -> bytes:
        flat = codes.detach().cpu().flatten()
        bits = (flat[:, None] >> self.shifts) & 1
        return np.packbits(bits.numpy().astype(np.uint8).ravel()).tobytes()

    def unpack(self, blob: bytes, shape) -> torch.Tensor:
        n = int(np.prod(shape))
        raw = np.unpackbits(np.frombuffer(blob, dtype=np.uint8))[: n * self.bits]
        bits = torch.from_numpy(raw.astype(np.int64)).view(n, self.bits)
        return (bits << self.shifts).sum(1).view(*shape)


class Codec(nn.Module):
    def __init__(self, dim=4, stride=8, n_q=2, bits=2):
        super().__init__()
        self.encoder = nn.Conv1d(1, dim, stride, stride)
        self.quantizer = ResidualVQ(n_q, dim=dim, size=2 ** bits)
        self.decoder = nn.ConvTranspose1d(dim, 1, stride, stride)
        self.packer = BitPacker(bits)

    @property
    def device(self):
        return next(self.parameters()).device

    def encode(self, wav):
        z = self.encoder(wav).transpose(1, 2)
        return self.quantizer(z)[1]

    def decode(self, codes):
        return self.decoder(self.quantizer.decode(codes).transpose(1, 2))

    def compress(self, wav) -> tp.Tuple[bytes, tuple]:
        codes = self.encode(wav.to(self.device))
        return self.packer.pack(codes), tuple(codes.shape)

    def decompress(self, blob, shape, place: bool = True):
        codes = self.packer.unpack(blob, shape)
        if place:
            codes = codes.to(self.device)
        return self.decode(codes)


def case_round_trip_through_bytes():
    codec = Codec().to(get_device()).eval()
    blob, shape = codec.compress(sine())
    with torch.no_grad():
        wav = codec.decompress(blob, shape, place=False)
    return wav.shape


def case_round_trip_through_bytes_placed():
    codec = Codec().to(get_device()).eval()
    blob, shape = codec.compress(sine())
    with torch.no_grad():
        return codec.decompress(blob, shape).cpu().numpy().shape


# --------------------------------------------------------------------------------------------------------------
# streaming

class CausalConv(nn.Module):
    def __init__(self, cin, cout, kernel):
        super().__init__()
        self.conv = nn.Conv1d(cin, cout, kernel)
        self.pad = kernel - 1
        self.reset()

    def reset(self):
        self._past = torch.zeros(1, self.conv.in_channels, self.pad)

    def forward(self, x):
        if self._past.device != x.device:
            self._past = self._past.to(x)
        x = torch.cat([self._past, x], dim=-1)
        self._past = x[..., -self.pad:]
        return self.conv(x)


class OverlapAdd:
    def __init__(self, frame: int, hop: int, device="cpu"):
        self.frame, self.hop = frame, hop
        self.window = hann(frame, device=device)
        self.tail = torch.zeros(frame - hop, device=device)
        self.norm = torch.zeros_like(self.tail)

    def push(self, chunk):
        frame = chunk.reshape(-1) * self.window
        frame[: len(self.tail)] += self.tail
        self.tail = frame[self.hop:].clone()
        return frame[: self.hop]

    @classmethod
    def like(cls, x, hop):
        return cls(x.shape[-1], hop, x.device)


def chunks(wav, size):
    for start in range(0, wav.shape[-1] - size + 1, size):
        yield wav[..., start:start + size]


def case_streaming_causal_conv():
    net = CausalConv(1, 1, 3).to(get_device())
    wav = sine(device=get_device())
    outs = [net(c) for c in chunks(wav, 40)]
    net.reset()
    outs.append(net(wav[..., :10]))
    return torch.cat(outs, -1).shape


class StreamingCodec:
    def __init__(self, codec: Codec, latency: int = 2):
        self.codec = codec
        self.queue: tp.Deque[torch.Tensor] = deque(maxlen=latency)
        self.written = []

    def warmup(self):
        while len(self.queue) < self.queue.maxlen:
            self.queue.append(torch.zeros(1, 1, 8))
        return self

    def feed(self, chunk):
        self.queue.append(chunk)
        context = torch.cat(list(self.queue), dim=-1)  # raises
        self.written.append(self.codec.decode(self.codec.encode(context))[..., -chunk.shape[-1]:])

    def flush(self):
        out, self.written = torch.cat(self.written, dim=-1), []
        self.queue.clear()
        return out


def case_streaming_with_warm_queue():
    stream = StreamingCodec(Codec().to(get_device()).eval()).warmup()
    for c in chunks(sine(device=get_device()), 8):
        stream.feed(c)
    return stream.flush().shape


def case_streaming_after_flush():
    stream = StreamingCodec(Codec().to(get_device()).eval()).warmup()
    assert all(q.is_cuda is False for q in stream.queue)
    stream.queue.clear()
    for c in chunks(sine(device=get_device()), 8):
        stream.feed(c)
    return stream.flush().shape


def case_loudness_report():
    device = get_device()
    codec = Codec().to(device)
    ola = OverlapAdd.like(torch.zeros(8, device=device), hop=4)
    levels = []
    for c in chunks(sine(device=device), 8):
        y = codec.decode(codec.encode(c)).detach()
        levels.append(ola.push(y).pow(2).mean().sqrt())
    db = 20 * np.log10(np.array(levels) + 1e-9)  # raises
    return db.mean()


# --------------------------------------------------------------------------------------------------------------
# language model over the codes, for entropy coding

class CodeLM(nn.Module):
    def __init__(self, card, dim=4):
        super().__init__()
        self.emb = nn.Embedding(card + 1, dim)
        self.rnn = nn.LSTM(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, card)
        self.dim = dim

    def initial_state(self, batch):
        h = torch.zeros(1, batch, self.dim)
        return h, h.clone()

    def forward(self, codes, state=None):
        y, state = self.rnn(self.emb(codes), state)  # raises
        return self.head(y).log_softmax(-1), state

    def estimated_bits(self, codes):
        flat = codes.permute(1, 2, 0).flatten(1)
        shifted = F.pad(flat[:, :-1] + 1, (1, 0))
        state, total = self.initial_state(len(flat)), 0.0
        for t in range(flat.shape[1]):
            logp, state = self(shifted[:, t:t + 1], state)
            total -= logp[:, 0].gather(1, flat[:, t:t + 1]).sum()
        return total / math.log(2)


def case_entropy_coding_cost():
    device = get_device()
    codec, lm = Codec().to(device), CodeLM(4).to(device)
    codes = codec.encode(sine(device=device))
    with torch.no_grad():
        return float(lm.estimated_bits(codes))
