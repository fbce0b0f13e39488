import torch
from torch.utils.data import DataLoader
import l5_data_sampling as m
D = "cuda:0"
X = lambda *s: torch.randn(*s, device=D)
T = lambda *s: torch.randint(2, 9, s, device=D)
def loader():
    ds = m.TokenDataset(list(range(1, 15)))
    for b in DataLoader(ds, batch_size=4, collate_fn=m.PadCollator(), sampler=m.LengthGroupedSampler([4] * len(ds), 4)):
        assert m.move_to(b, D)["labels"].is_cuda
def replay():
    r = m.PrioritizedReplay()
    for _ in range(6):
        r.push(X(3), X(1))
    return r
def rp_sample():
    r = replay(); (s, a), i = r.sample(4); r.update(i, a.squeeze(1)); assert s.is_cuda
def rp_weights():
    r = replay(); (s, a), i = r.sample(4); r.weights(i, a.squeeze(1))
CALLS = {
    "m.TokenDataset m.PadCollator": loader,
    "pad_to_length": lambda: m.pad_to_length(T(2, 3), 5, 0),
    "left_pad": lambda: m.left_pad(T(2, 3), 5, 0),
    "shift_tokens_right": lambda: m.shift_tokens_right(T(2, 3), 0, 1),
    "mask_tokens": lambda: m.mask_tokens(T(2, 5), 10, 9),
    "corrupt_tokens": lambda: m.corrupt_tokens(T(2, 5), 10),
    "random_spans": lambda: m.random_spans(X(2, 5)),
    "spec_augment": lambda: m.spec_augment(X(2, 5, 3)),
    "mixup": lambda: m.mixup(X(4, 3), T(4) % 3, 3),
    "mixup_vector": lambda: m.mixup_vector(X(4, 3), T(4) % 3, 3),
    "m.PrioritizedReplay": rp_sample,
    "PrioritizedReplay.weights": rp_weights,
    "cosine_betas": lambda: m.cosine_betas(5),
    "NoiseSchedule.add_noise": lambda: m.NoiseSchedule().add_noise(X(2, 3), X(2, 3), T(2)),
    "get_velocity": lambda: m.NoiseSchedule().get_velocity(X(2, 3), X(2, 3), T(2)),
    "snr_weights": lambda: m.NoiseSchedule().snr_weights(T(2), X(2)),
    "step": lambda: (m.NoiseSchedule().step(X(2, 3), 4, X(2, 3)), m.NoiseSchedule().step(X(2, 3), 0, X(2, 3))),
    "antithetic_timesteps": lambda: m.antithetic_timesteps(X(5, 2), 10),
    "stratified_z": lambda: m.stratified_z(X(2), X(2), 4),
    "stratified_z plain": lambda: m.stratified_z(X(2), X(2), 4, perturb=False),
    "sample_pdf": lambda: m.sample_pdf(X(2, 5), torch.rand(2, 4, device=D), 6),
    "farthest_points": lambda: m.farthest_points(X(2, 6, 3), 3),
}
