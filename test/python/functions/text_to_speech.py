"""Text to speech: encoders, length regulation, alignments, vocoders and their losses."""
import copy
import io
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

@dataclass
class TTSConfig:
    symbols: int = 20
    hidden: int = 8
    mels: int = 6
    n_fft: int = 16
    hop: int = 4
    speakers: int = 3
    device: str = "cuda:0"

def sequence_mask(lengths, max_length=None):
    max_length = int(lengths.max()) if max_length is None else max_length
    steps = torch.arange(max_length, dtype=lengths.dtype, device=lengths.device)
    return steps[None] < lengths[:, None]

class TextCollate:
    def __init__(self, sort=True):
        self.sort = sort

    def __call__(self, items):
        if self.sort:
            items = sorted(items, key=lambda item: -len(item["text"]))
        lengths = torch.tensor([len(item["text"]) for item in items])
        return {"text": pad_sequence([item["text"] for item in items], batch_first=True), "lengths": lengths,
                "durations": pad_sequence([item["durations"] for item in items], batch_first=True),
                "speaker": torch.tensor([item["speaker"] for item in items]), "names": [item["name"] for item in items]}

def utterances(count=3, cfg=TTSConfig()):
    generator = torch.Generator().manual_seed(1)
    for index in range(count):
        size = 3 + index
        yield {"text": torch.randint(1, cfg.symbols, (size,), generator=generator), "speaker": index % cfg.speakers,
               "durations": torch.randint(1, 4, (size,), generator=generator), "name": f"utt{index}"}

def to_device(batch, device, skip=()):
    return {key: value.to(device) if torch.is_tensor(value) and key not in skip else value for key, value in batch.items()}

class TextEncoder(nn.Module):
    def __init__(self, cfg, host_lengths=True):
        super().__init__()
        self.host_lengths = host_lengths
        self.embedding = nn.Embedding(cfg.symbols, cfg.hidden)
        self.rnn = nn.LSTM(cfg.hidden, cfg.hidden // 2, batch_first=True, bidirectional=True)

    def forward(self, text, lengths):
        x = self.embedding(text)
        lengths = lengths.cpu() if self.host_lengths else lengths
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)  # raises
        return pad_packed_sequence(self.rnn(packed)[0], batch_first=True, total_length=text.shape[1])[0]

class LengthRegulator(nn.Module):
    def __init__(self, pace=1.0):
        super().__init__()
        self.pace = torch.tensor(pace)

    def round(self, durations):
        return torch.clamp(torch.round(durations.float() * self.pace), min=1).long()

    def expand_one(self, states, repeats):
        return torch.repeat_interleave(states, repeats, dim=0)  # raises

    def forward(self, states, durations):
        rounded = self.round(durations)
        pieces = [self.expand_one(s, d) for s, d in zip(states, rounded)]
        return pad_sequence(pieces, batch_first=True), rounded.sum(1)

class MatrixRegulator(LengthRegulator):
    """The same by a path matrix."""

    def forward(self, states, durations):
        rounded = self.round(durations)
        ends = rounded.cumsum(1)
        frames = torch.arange(int(ends[:, -1].max()), device=states.device)
        path = (frames[None, :, None] < ends[:, None]) & (frames[None, :, None] >= (ends - rounded)[:, None])
        return path.to(states.dtype) @ states, ends[:, -1]

class SpeakerTable:
    """Mean embedding of each speaker, kept by name."""

    def __init__(self, store="cpu"):
        self.store, self.vectors = torch.device(store), {}

    def add(self, name, vector):
        vector = F.normalize(vector.detach(), dim=-1).to(self.store)
        old = self.vectors.get(name)
        self.vectors[name] = vector if old is None else (old + vector) / 2

    def lookup(self, names):
        return torch.stack([self.vectors[name] for name in names])

    def nearest(self, query):
        names = sorted(self.vectors)
        scores = F.cosine_similarity(query[None], self.lookup(names), dim=-1)  # raises
        return names[int(scores.argmax())]

class Synthesizer(nn.Module):
    def __init__(self, cfg, regulator=None, encoder=None):
        super().__init__()
        self.cfg = cfg
        self.encoder = encoder or TextEncoder(cfg)
        self.regulator = regulator or LengthRegulator()
        self.speakers = nn.Embedding(cfg.speakers, cfg.hidden)
        self.decoder = nn.Linear(cfg.hidden, cfg.mels)

    def condition(self, states, batch):
        return states + self.speakers(batch["speaker"])[:, None]  # raises

    def forward(self, batch):
        states = self.condition(self.encoder(batch["text"], batch["lengths"]), batch)
        frames, lengths = self.regulator(states, batch["durations"])
        return self.decoder(frames), lengths

class ExternalVoice(Synthesizer):
    def __init__(self, cfg, table, follow=True):
        super().__init__(cfg)
        self.table, self.follow = table, follow

    def condition(self, states, batch):
        voices = self.table.lookup(batch["names"])
        if self.follow:
            voices = voices.to(states, non_blocking=True)
        return states + voices.unsqueeze(1)  # raises

def filterbank(cfg):
    bins = np.linspace(0, cfg.n_fft // 2, cfg.mels + 2)
    grid = np.arange(cfg.n_fft // 2 + 1)
    up = (grid[None] - bins[:-2, None]) / (bins[1:-1] - bins[:-2])[:, None]
    down = (bins[2:, None] - grid[None]) / (bins[2:] - bins[1:-1])[:, None]
    return np.maximum(0, np.minimum(up, down)).astype(np.float32)

class MelExtractor(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.register_buffer("basis", torch.from_numpy(filterbank(cfg)), persistent=False)
        self.window = torch.hann_window(cfg.n_fft)

    def get_window(self, wav):
        return self.window

    def forward(self, wav):
        window = self.get_window(wav)
        spec = torch.stft(wav, self.cfg.n_fft, self.cfg.hop, window=window, return_complex=True).abs()  # raises
        return torch.log(torch.clamp(self.basis @ spec, min=1e-5))

class CachedMel(MelExtractor):
    """Windows by device."""
    cache = {}

    def get_window(self, wav):
        key = f"{wav.dtype}_{wav.device}"
        if key not in self.cache:
            self.cache[key] = self.window.to(wav)
        return self.cache[key]

@lru_cache(maxsize=None)
def cached_basis(mels, n_fft, where=None):
    basis = torch.from_numpy(filterbank(TTSConfig(mels=mels, n_fft=n_fft)))
    return basis if where is None else basis.to(where)

def mel_of_spectrum(spec, cfg, where=None):
    return torch.matmul(cached_basis(cfg.mels, cfg.n_fft, where), spec).clamp(min=1e-5).log()  # raises

class PeriodDiscriminator(nn.Module):
    def __init__(self, period):
        super().__init__()
        self.period = period
        self.convs = nn.ModuleList([nn.Conv2d(1, 4, (3, 1), padding=(1, 0)), nn.Conv2d(4, 4, (3, 1), padding=(1, 0))])
        self.post = nn.Conv2d(4, 1, 1)

    def forward(self, wav):
        extra = -wav.shape[-1] % self.period
        x = F.pad(wav, (0, extra), "reflect").view(wav.shape[0], 1, -1, self.period)
        maps = []
        for conv in self.convs:
            x = F.leaky_relu(conv(x), 0.1)  # raises
            maps.append(x)
        return self.post(x).flatten(1), maps

class MultiPeriod(nn.Module):
    def __init__(self, periods=(2, 3), plain=False):
        super().__init__()
        made = [PeriodDiscriminator(p) for p in periods]
        self.parts = made if plain else nn.ModuleList(made)

    def forward(self, wav):
        outputs = [part(wav) for part in self.parts]
        return [score for score, _ in outputs], [maps for _, maps in outputs]

def feature_matching(real, fake, start=0.0):
    loss = start
    for real_maps, fake_maps in zip(real, fake):
        for r, f in zip(real_maps, fake_maps):
            loss += F.l1_loss(f, r.detach())  # raises
    return loss * 2

def adversarial(scores, target=1.0):
    target = torch.tensor(target)
    return sum(((score - target) ** 2).mean() for score in scores)

class Generator(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.up = nn.ConvTranspose1d(cfg.mels, 1, cfg.hop * 2, cfg.hop, padding=cfg.hop // 2)
        self.noise_scale = 0.1

    def forward(self, mel, generator=None):
        wav = self.up(mel).squeeze(1)
        noise = torch.randn(wav.shape, device=wav.device, generator=generator)  # raises
        return torch.tanh(wav + self.noise_scale * noise)

class VocoderTask:
    def __init__(self, cfg, discriminator, mel_cls=CachedMel):
        self.cfg = cfg
        self.generator = Generator(cfg).to(cfg.device)
        self.discriminator = discriminator.to(cfg.device)
        self.mel = mel_cls(cfg).to(cfg.device)
        self.ema = copy.deepcopy(self.generator)

    def losses(self, wav, start=0.0):
        mel = self.mel(wav)
        fake = self.generator(mel)[..., :wav.shape[-1]]
        scores, fake_maps = self.discriminator(fake)
        _, real_maps = self.discriminator(wav)
        return adversarial(scores) + feature_matching(real_maps, fake_maps, start)

    @torch.no_grad()
    def average(self, decay=0.9):
        for shadow, live in zip(self.ema.parameters(), self.generator.parameters()):
            shadow.lerp_(live, 1 - decay)  # raises

    def offload_ema(self):
        self.ema.cpu()
        return self

def monotonic_path(score, text_lengths, mel_lengths):
    """Dynamic programming over numpy, as in alignment search."""
    value = score.detach().cpu().numpy().copy()
    path = np.zeros_like(value, dtype=np.int64)
    for b, (ty, tx) in enumerate(zip(mel_lengths.tolist(), text_lengths.tolist())):
        for y in range(1, ty):
            stay, move = value[b, :, y - 1], np.concatenate([[-1e9], value[b, :-1, y - 1]])
            value[b, :, y] += np.maximum(stay, move)
        x = tx - 1
        for y in reversed(range(ty)):
            path[b, x, y] = 1
            if x and (x == y or value[b, x, y - 1] < value[b, x - 1, y - 1]):
                x -= 1
    return torch.from_numpy(path)

def align(states, mel, text_lengths, mel_lengths, back=True):
    score = -torch.cdist(states, mel)
    mask = sequence_mask(text_lengths, score.shape[1])[:, :, None] & sequence_mask(mel_lengths, score.shape[2])[:, None]
    path = monotonic_path(score.masked_fill(~mask, -1e4), text_lengths, mel_lengths)
    path = path.to(score.device) if back else path
    return path.sum(2), (path * score).sum()  # raises

class PitchStats:
    def __init__(self, mean=5.0, bins=4):
        self.mean, self.edges = torch.tensor(mean), torch.linspace(-1, 1, bins - 1)

    def normalize(self, pitch):
        return (pitch - self.mean) / pitch.std()

    def quantize(self, pitch):
        return torch.bucketize(self.normalize(pitch), self.edges)  # raises

def plot_alignment(path, fold=True):
    rows = [row.argmax().item() if fold else row for row in path]
    return np.stack([np.asarray(row) for row in rows])  # raises

def synthesize(cfg, model, count=3, skip=()):
    return model.to(cfg.device)(to_device(TextCollate()(list(utterances(count))), cfg.device, skip))

def case_plain():
    mel, lengths = synthesize(TTSConfig(), Synthesizer(TTSConfig()))
    assert mel.device == lengths.device

def case_lengths_stay():
    cfg = TTSConfig(device="cuda:1")
    synthesize(cfg, Synthesizer(cfg, encoder=TextEncoder(cfg, host_lengths=False)), skip=("lengths",))

def case_lengths_moved():
    cfg = TTSConfig()
    synthesize(cfg, Synthesizer(cfg, encoder=TextEncoder(cfg, host_lengths=False)))

def case_durations_stay():
    synthesize(TTSConfig(), Synthesizer(TTSConfig()), skip=("durations",))

def case_matrix_regulator():
    synthesize(TTSConfig(), Synthesizer(TTSConfig(), MatrixRegulator(1.2)), skip=("lengths",))

def case_speaker_stays():
    synthesize(TTSConfig(), Synthesizer(TTSConfig()), skip=("speaker", "lengths"))

def fill(table, device):
    for index in range(3):
        table.add(f"utt{index}", torch.rand(8, device=device))
        table.add(f"utt{index}", torch.rand(8, device=device))
    return table

def case_table_followed():
    cfg = TTSConfig()
    synthesize(cfg, ExternalVoice(cfg, fill(SpeakerTable(), "cuda:1")))

def case_table_not_followed():
    cfg = TTSConfig()
    synthesize(cfg, ExternalVoice(cfg, fill(SpeakerTable(), cfg.device), follow=False))

def case_table_nearest():
    fill(SpeakerTable("cpu"), "cuda:0").nearest(torch.rand(8, device="cuda:0"))

def case_table_nearest_host():
    fill(SpeakerTable("cpu"), "cuda:0").nearest(torch.rand(8, device="cuda:0").cpu())

def case_window_attribute():
    MelExtractor(TTSConfig()).to("cuda:0")(torch.rand(2, 32, device="cuda:0"))

def case_window_cached():
    for rank in range(2):
        CachedMel(TTSConfig()).to(rank)(torch.rand(2, 32, device=rank))

def case_basis_two_cards():
    for rank in (0, 1):
        spec = torch.rand(1, 9, 5, device=rank)
        mel_of_spectrum(spec, TTSConfig(), torch.device("cuda", 0))

def case_basis_by_device():
    for rank in (0, 1):
        spec = torch.rand(1, 9, 5, device=rank)
        mel_of_spectrum(spec, TTSConfig(), spec.device)

def case_vocoder_losses():
    task = VocoderTask(TTSConfig(), MultiPeriod())
    task.losses(torch.rand(2, 36).cuda()).backward()
    task.average()

def case_vocoder_start():
    VocoderTask(TTSConfig(), MultiPeriod()).losses(torch.rand(2, 36).cuda(), start=torch.zeros(()))

def case_vocoder_plain_list():
    VocoderTask(TTSConfig(), MultiPeriod(plain=True)).losses(torch.rand(2, 36).cuda())

def case_ema_offloaded():
    VocoderTask(TTSConfig(), MultiPeriod()).offload_ema().average()

def case_ema_saved():
    task = VocoderTask(TTSConfig(), MultiPeriod()).offload_ema()
    stream = io.BytesIO()
    torch.save(task.ema.state_dict(), stream)
    stream.seek(0)
    task.generator.load_state_dict(torch.load(stream))
    task.generator(torch.rand(1, 6, 4).cuda())

def case_seeded_noise():
    cfg = TTSConfig()
    Generator(cfg).to(cfg.device)(torch.rand(1, 6, 4, device=cfg.device), torch.Generator().manual_seed(3))

def case_align_back():
    states, mel = torch.rand(2, 3, 4).cuda(), torch.rand(2, 6, 4).cuda()
    durations, _ = align(states, mel, torch.tensor([3, 2]).cuda(), torch.tensor([6, 5]).cuda())
    LengthRegulator()(states, durations)

def case_align_path_left():
    states, mel = torch.rand(2, 3, 4).cuda(), torch.rand(2, 6, 4).cuda()
    align(states, mel, torch.tensor([3, 2]).cuda(), torch.tensor([6, 5]).cuda(), back=False)

def case_pitch_normalize():
    assert PitchStats().normalize(torch.rand(9).cuda()).is_cuda

def case_pitch_quantize():
    PitchStats().quantize(torch.rand(9).cuda())

def case_plot_folded():
    plot_alignment(torch.rand(4, 5).cuda())

def case_plot_raw():
    plot_alignment(torch.rand(4, 5, device="cuda:1"), fold=False)
