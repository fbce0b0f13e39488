"""Mel front end, CTC, speaker embeddings."""
import math
import os
import tempfile
from functools import lru_cache

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def hz_to_mel(f):
    return 2595.0 * math.log10(1.0 + f / 700.0)


def create_fb(n_freqs=33, n_mels=8, sr=8000):
    freqs = torch.linspace(0, sr // 2, n_freqs)
    m = torch.linspace(hz_to_mel(0), hz_to_mel(sr / 2), n_mels + 2)
    pts = 700.0 * (10.0 ** (m / 2595.0) - 1.0)
    diff = pts[1:] - pts[:-1]
    slopes = pts.unsqueeze(0) - freqs.unsqueeze(1)
    down, up = -slopes[:, :-2] / diff[:-1], slopes[:, 2:] / diff[1:]
    return torch.max(torch.zeros(1), torch.min(down, up))


@lru_cache(maxsize=None)
def mel_filters(device):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "mel.npz")
        np.savez(path, mel=create_fb().t().numpy())
        with np.load(path) as f:
            return torch.from_numpy(f["mel"]).to(device)


@lru_cache(maxsize=None)
def hann(n):
    return torch.hann_window(n)


def log_mel(audio, n_fft=64, hop=16, window=None):
    if isinstance(audio, np.ndarray):
        audio = torch.from_numpy(audio)
    window = torch.hann_window(n_fft).to(audio.device) if window is None else window
    stft = torch.stft(audio, n_fft, hop, window=window, return_complex=True)  # raises
    mag = stft[..., :-1].abs() ** 2
    spec = torch.clamp(mel_filters(audio.device) @ mag, min=1e-10).log10()
    return torch.maximum(spec, spec.max() - 8.0)


class Frontend(nn.Module):
    def __init__(self, normalize=True):
        super().__init__()
        self.register_buffer("window", torch.hann_window(64), persistent=False)
        self.register_buffer("fb", create_fb())
        self.normalize = normalize
        self.glob_mean, self.count = torch.zeros(8, 1), 0

    def forward(self, wav):
        s = torch.stft(wav, 64, 16, window=self.window, return_complex=True).abs().pow(2)
        x = (s.transpose(1, 2) @ self.fb).transpose(1, 2).add(1e-6).log()
        if self.normalize:
            if self.training:
                cur = x.mean((0, 2)).unsqueeze(-1).detach()
                self.count += 1
                self.glob_mean = cur if self.count == 1 else self.glob_mean + (cur - self.glob_mean) / self.count
            x = x - self.glob_mean.data  # raises
        return x


class Acoustic(nn.Module):
    def __init__(self, vocab=6):
        super().__init__()
        self.front = Frontend()
        self.rnn = nn.LSTM(8, 12, num_layers=2, batch_first=True)
        self.fc = nn.Linear(12, vocab)

    def init_state(self, bsz, device=None):
        z = torch.zeros(2, bsz, 12, device=device)
        return z, z.clone()

    def forward(self, wav, state=None):
        x = self.front(wav).transpose(1, 2)
        y, state = self.rnn(x, state)  # raises
        return self.fc(y).log_softmax(-1), state


# clean
def case_whisper_front_end():
    wav = np.random.randn(800).astype(np.float32)
    host = log_mel(wav)
    gpu = log_mel(torch.from_numpy(wav).cuda())
    third = log_mel(torch.tensor(wav, device="cuda"), window=hann(64).cuda())
    return float((host - gpu.cpu()).abs().max()), third.shape


# broken
def case_cached_window():
    wavs = torch.randn(2, 400).pin_memory()
    feats = [log_mel(w, window=hann(64)) for w in wavs]
    gpu = [log_mel(w.cuda(non_blocking=True), window=hann(64)) for w in wavs]
    return torch.stack(gpu).mean() - torch.stack(feats).mean()


# clean
def case_ctc_training_with_host_targets():
    model = Acoustic().cuda().train()
    opt = torch.optim.Adadelta(model.parameters(), lr=1.0)
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    ctc = nn.CTCLoss(blank=0, zero_infinity=True)
    for bsz in (2, 3):
        wav = torch.randn(bsz, 640).cuda()
        targets = torch.randint(1, 6, (bsz, 4))
        lp, _ = model(wav)
        lens_in = torch.full((bsz,), lp.size(1), dtype=torch.long)
        lens_tg = torch.full((bsz,), 4, dtype=torch.long)
        loss = ctc(lp.transpose(0, 1), targets, lens_in, lens_tg)     # the native kernel takes host targets and lengths
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
    return loss.item()


# broken
def case_eval_before_statistics():
    front = Frontend().to("cuda")
    front.eval()
    return front(torch.randn(1, 320, device="cuda")).amax()


# broken
def case_streaming_state():
    m = Acoustic().to(torch.device("cuda"))
    m.train()
    state = m.init_state(1)
    outs = []
    for chunk in torch.randn(1, 960).to("cuda").split(320, dim=1):
        lp, state = m(chunk, state)
        outs.append(lp.argmax(-1))
    return torch.cat(outs, 1)


# clean
def case_speaker_scores():
    class Attentive(nn.Module):
        def __init__(self, c=8):
            super().__init__()
            self.att = nn.Conv1d(c, c, 1)

        def forward(self, x, lengths=None):
            L = x.shape[-1]
            if lengths is None:
                lengths = torch.ones(x.shape[0], device=x.device)
            mask = torch.arange(L, device=lengths.device)[None] < (lengths * L)[:, None]
            mask = mask.unsqueeze(1)
            a = self.att(x).masked_fill(mask == 0, float("-inf")).softmax(2)
            mean = (a * x).sum(2)
            return torch.cat([mean, (a * (x - mean.unsqueeze(2)) ** 2).sum(2).clamp(1e-9).sqrt()], 1)

    front, pool = Frontend(normalize=False).cuda(), Attentive().cuda()
    enrol = F.normalize(pool(front(torch.randn(3, 640).cuda()), torch.tensor([1., .5, .7]).cuda()), dim=1)
    test = F.normalize(pool(front(torch.randn(2, 640).cuda())), dim=1)
    sims = (test @ enrol.T).detach().cpu()
    labels = torch.tensor([[1, 0, 0], [0, 1, 0]])
    order = sims.flatten().argsort(descending=True)
    tar = labels.flatten()[order].cumsum(0)
    best = np.interp(.5, np.linspace(0, 1, 6), tar.numpy())
    return best, enrol[labels.argmax(1)].shape
