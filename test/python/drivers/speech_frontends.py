from speech_frontends import *
import tempfile
from torch.utils.data import DataLoader


def wave():
    return torch.randn(2, 640, device="cuda")


def feats():
    return torch.randn(2, 12, 10, device="cuda")


def drive_spec():
    spectrogram(wave(), 64, 32)


def drive_power():
    LogMel().to("cuda").power(wave())


def drive_logmel():
    LogMel().to("cuda")(wave())


def drive_mask():
    make_pad_mask(torch.tensor([3, 12], device="cuda"), feats())


def drive_deltas():
    compute_deltas(feats())


def drive_vad():
    energy_vad(wave()[0])


def drive_trim():
    trim_silence(wave()[0])


def drive_pre():
    PreEmphasis().to("cuda")(wave())


def cmvn(**kw):
    path = tempfile.mktemp()
    torch.save({"sum": torch.zeros(10), "sumsq": torch.ones(10) * 5, "count": 5}, path)
    GlobalCMVN.from_file(path, **kw).to("cuda")(feats())


def drive_cmvn():
    cmvn()


def drive_cmvn_mean():
    cmvn(norm_var=False)


def drive_utt():
    UtteranceCMVN().to("cuda")(feats(), [3, 12])


def mixer():
    return NoiseMixer([torch.randn(1000) for _ in range(3)], torch.rand(20))


def drive_noise():
    mixer()(wave())


def drive_reverb():
    mixer().reverb(wave())


def drive_task():
    data = Utterances([(torch.randn(n, 10), [1] * n) for n in (3, 5, 4)])
    for batch in DataLoader(data, batch_size=3, collate_fn=collate):
        FrameTask(10, 3).to("cuda").step(batch)
