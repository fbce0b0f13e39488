"""Diffusion, adversarial networks, recurrent networks and reinforcement learning."""
import random
from collections import deque, namedtuple
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def _linear_betas(steps):
    return torch.linspace(1e-4, 0.02, steps)


def _extract(table, t, shape):
    out = table.gather(-1, t)  # raises
    return out.reshape(t.shape[0], *((1,) * (len(shape) - 1)))


class PlainSchedule:
    def __init__(self, steps=10):
        self.steps = steps
        self.betas = _linear_betas(steps)
        self.alphas = 1.0 - self.betas
        self.cumulative = torch.cumprod(self.alphas, dim=0)

    def to(self, device):
        for name, value in vars(self).items():
            if torch.is_tensor(value):
                setattr(self, name, value.to(device))
        return self

    def add_noise(self, x, noise, t):
        signal = _extract(self.cumulative.sqrt(), t, x.shape)
        spread = _extract((1 - self.cumulative).sqrt(), t, x.shape)
        return signal * x + spread * noise


class Denoiser(nn.Module):
    def __init__(self, channels=2, steps=10):
        super().__init__()
        self.time = nn.Embedding(steps, channels)
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x, t):
        return self.conv(x + self.time(t)[:, :, None, None])


def case_noise_with_moved_schedule():
    device = torch.device("cuda:1")
    schedule, model = PlainSchedule().to(device), Denoiser().to(device)
    x = torch.rand(3, 2, 4, 4).to(device)
    t = torch.randint(0, schedule.steps, (x.shape[0],), device=x.device)
    noise = torch.randn_like(x)
    loss = F.mse_loss(model(schedule.add_noise(x, noise, t), t), noise)
    loss.backward()
    return loss.item()


def case_noise_with_new_schedule():
    device = torch.device("cuda:1")
    schedule, model = PlainSchedule(), Denoiser().to(device)
    x = torch.rand(3, 2, 4, 4).to(device)
    t = torch.randint(0, schedule.steps, (x.shape[0],), device=x.device)
    noise = torch.randn_like(x)
    loss = F.mse_loss(model(schedule.add_noise(x, noise, t), t), noise)
    loss.backward()
    return loss.item()


@torch.no_grad()
def case_sampling_with_scalars_of_the_host():
    schedule, model = PlainSchedule(), Denoiser().cuda()
    x = torch.randn(2, 2, 4, 4, device="cuda")
    for step in reversed(range(schedule.steps)):
        t = torch.full((x.shape[0],), step, dtype=torch.long, device=x.device)
        predicted = model(x, t)
        alpha, cumulative = schedule.alphas[step], schedule.cumulative[step]
        x = (x - (1 - alpha) / (1 - cumulative).sqrt() * predicted) / alpha.sqrt()
        if step > 0:
            x = x + schedule.betas[step].sqrt() * torch.randn_like(x)
    return x.clamp(-1, 1).add(1).mul(127.5).byte().permute(0, 2, 3, 1).cpu().numpy()


@torch.no_grad()
def case_sampling_with_strided_timesteps():
    schedule, model = PlainSchedule(), Denoiser().cuda()
    x = torch.randn(2, 2, 4, 4, device="cuda")
    timesteps = torch.from_numpy(np.arange(0, schedule.steps, 3)[::-1].copy())
    for t in timesteps:
        batch_t = t.expand(x.shape[0]).to(x.device)
        predicted = model(x, batch_t)
        x = x - schedule.betas[batch_t].view(-1, 1, 1, 1) * predicted  # raises
    return x.cpu()


@dataclass
class SchedulerOutput:
    previous: torch.Tensor
    origin: torch.Tensor = None
    trace: list = field(default_factory=list)


class EulerScheduler:
    order = 1

    def __init__(self, steps=10):
        alphas = torch.cumprod(1 - _linear_betas(steps), 0)
        self.all_sigmas = ((1 - alphas) / alphas) ** 0.5
        self.sigmas, self.timesteps = None, None

    def set_timesteps(self, count, device=None):
        timesteps = np.linspace(0, len(self.all_sigmas) - 1, count)[::-1].copy()
        sigmas = np.interp(timesteps, np.arange(len(self.all_sigmas)), self.all_sigmas.numpy())
        self.sigmas = torch.from_numpy(np.append(sigmas, 0.0).astype(np.float32)).to(device)
        self.timesteps = torch.from_numpy(timesteps).to(device)

    def step(self, predicted, t, sample):
        index = (self.timesteps == t).nonzero()[0].item()
        sigma = self.sigmas[index]
        origin = sample - sigma * predicted
        return SchedulerOutput(sample + (self.sigmas[index + 1] - sigma) * (sample - origin) / sigma, origin)

    def add_noise(self, sample, noise, timesteps):
        steps = [(self.timesteps == t).nonzero().item() for t in timesteps]
        return sample + noise * self.sigmas[steps].view(-1, 1, 1, 1)  # raises


def case_euler_without_device():
    scheduler = EulerScheduler()
    scheduler.set_timesteps(4)
    sample = torch.randn(1, 2, 4, 4, device="cuda") * scheduler.sigmas.max()
    for t in scheduler.timesteps:
        sample = scheduler.step(torch.tanh(sample), t, sample).previous
    return sample.cpu().numpy()


def case_euler_noise_without_device():
    scheduler = EulerScheduler()
    scheduler.set_timesteps(4)
    image = torch.zeros(2, 2, 4, 4, device="cuda:3")
    noisy = scheduler.add_noise(image, torch.randn_like(image), scheduler.timesteps[:2])
    return noisy.std().item()


def _generator(latent=4):
    return nn.Sequential(nn.Linear(latent, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 6))


def _discriminator():
    return nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))


class GanTrainer:
    def __init__(self, device, latent=4):
        self.device, self.latent = device, latent
        self.generator, self.discriminator = _generator(latent).to(device), _discriminator().to(device)
        self.criterion = nn.BCEWithLogitsLoss()
        self.fixed_noise = torch.randn(2, latent)

    def discriminate(self, real):
        real = real.to(self.device)
        noise = torch.randn(len(real), self.latent, device=self.device)
        fake = self.generator(noise).detach()
        ones = torch.ones(len(real), 1, device=self.device)
        return (self.criterion(self.discriminator(real), ones)
                + self.criterion(self.discriminator(fake), torch.zeros_like(ones)))

    def penalty(self, real):
        real = real.to(self.device)
        fake = self.generator(torch.randn(len(real), self.latent).to(self.device)).detach()
        epsilon = torch.rand(len(real), 1)
        mixed = (epsilon * real + (1 - epsilon) * fake).requires_grad_()  # raises
        gradient, = torch.autograd.grad(self.discriminator(mixed).sum(), mixed, create_graph=True)
        return ((gradient.norm(2, dim=1) - 1) ** 2).mean()

    def preview(self):
        self.generator.eval()
        with torch.no_grad():
            out = self.generator(self.fixed_noise)  # raises
        self.generator.train()
        return out.cpu()


def case_gan_discriminator_round():
    trainer = GanTrainer("cuda:2")
    loss = trainer.discriminate(torch.randn(4, 6))
    loss.backward()
    return loss.item()


def case_gan_penalty():
    trainer = GanTrainer("cuda:2")
    (trainer.discriminate(torch.randn(4, 6)) + trainer.penalty(torch.randn(4, 6))).backward()


def case_gan_preview():
    trainer = GanTrainer("cuda:2")
    return trainer.preview().numpy()


def case_gan_preview_after_replacing_noise():
    trainer = GanTrainer("cuda:2")
    trainer.fixed_noise = torch.randn(2, trainer.latent, device=trainer.device)
    return trainer.preview().numpy()


class CharRnn(nn.Module):
    def __init__(self, vocabulary=9, width=6, layers=2):
        super().__init__()
        self.layers, self.width = layers, width
        self.embed = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        self.decode = nn.Linear(width, vocabulary)

    def init_hidden(self, batch):
        weight = next(self.parameters())
        return (weight.new_zeros(self.layers, batch, self.width), weight.new_zeros(self.layers, batch, self.width))

    def forward(self, ids, hidden):
        out, hidden = self.lstm(self.embed(ids), hidden)
        return self.decode(out), hidden


def _detached(hidden):
    if isinstance(hidden, torch.Tensor):
        return hidden.detach()
    return tuple(_detached(each) for each in hidden)


def case_truncated_backpropagation():
    device = torch.device("cuda")
    model = CharRnn().to(device)
    corpus = torch.randint(0, 9, (2, 13))
    hidden = model.init_hidden(2)
    for start in range(0, 12, 4):
        hidden = _detached(hidden)
        source = corpus[:, start:start + 4].to(device)
        target = corpus[:, start + 1:start + 5].to(device)
        logits, hidden = model(source, hidden)
        F.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
    return [each.norm().item() for each in hidden]


class GruTagger(nn.Module):
    def __init__(self, width=5):
        super().__init__()
        self.width = width
        self.hidden = self.init_hidden(2)
        self.gru = nn.GRU(width, width)

    def init_hidden(self, batch):
        return torch.zeros(1, batch, self.width)

    def forward(self, x):
        out, self.hidden = self.gru(x, self.hidden)  # raises
        return out


def case_stateful_gru():
    model = GruTagger().cuda()
    return model(torch.randn(3, 2, 5, device="cuda")).shape


def case_stateful_gru_reset_each_sequence():
    model = GruTagger().cuda()
    shapes = []
    for length in (3, 2):
        model.hidden = model.init_hidden(2).to(next(model.parameters()).device)
        shapes.append(model(torch.randn(length, 2, 5, device="cuda")).shape)
    return shapes


def case_packed_sequence_lengths_on_host():
    lstm = nn.LSTM(4, 4, batch_first=True).cuda()
    lengths = torch.tensor([3, 5, 2])
    padded = torch.randn(3, 5, 4, device="cuda")
    packed = nn.utils.rnn.pack_padded_sequence(padded, lengths, batch_first=True, enforce_sorted=False)
    out, (h, _) = lstm(packed)
    unpacked, lengths_again = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
    return unpacked.detach().cpu().numpy().shape, lengths_again.numpy(), h[-1].tolist()


def case_packed_sequence_lengths_from_mask():
    lstm = nn.LSTM(4, 4, batch_first=True).cuda()
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]).cuda()
    padded = torch.randn(2, 4, 4, device="cuda")
    lengths = mask.sum(1)
    packed = nn.utils.rnn.pack_padded_sequence(padded, lengths, batch_first=True)  # raises
    return lstm(packed)[1][0].shape


Transition = namedtuple("Transition", "state action reward following done")


class Replay:
    def __init__(self, size=32):
        self.memory = deque(maxlen=size)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, count):
        return Transition(*zip(*random.sample(self.memory, count)))


def _filled(device):
    replay, state = Replay(), torch.zeros(3, device=device)
    for index in range(8):
        following = state + torch.randn(3, device=device)
        replay.push(state, index % 2, float(index), following, index == 7)
        state = following
    return replay


def _q_targets(target, batch, device, gamma=0.9):
    following = torch.stack(batch.following).to(device)
    rewards = torch.tensor(batch.reward, device=device)
    live = torch.tensor([not done for done in batch.done], device=device)
    values = torch.zeros(len(rewards), device=device)
    with torch.no_grad():
        values[live] = target(following[live]).max(1).values
    return rewards + gamma * values


def case_q_learning_step():
    device = torch.device("cuda:0")
    policy, target = nn.Linear(3, 2).to(device), nn.Linear(3, 2).to(device)
    target.load_state_dict(policy.state_dict())
    batch = _filled("cpu").sample(4)
    actions = torch.tensor(batch.action).unsqueeze(1).to(device)
    values = policy(torch.stack(batch.state).to(device)).gather(1, actions).squeeze(1)
    loss = F.smooth_l1_loss(values, _q_targets(target, batch, device))
    loss.backward()
    return loss.item()


def case_q_learning_step_with_gathered_actions():
    device = torch.device("cuda:0")
    policy, target = nn.Linear(3, 2).to(device), nn.Linear(3, 2).to(device)
    batch = _filled(device).sample(4)
    actions = torch.tensor(batch.action).unsqueeze(1)
    values = policy(torch.stack(batch.state)).gather(1, actions).squeeze(1)  # raises
    return F.smooth_l1_loss(values, _q_targets(target, batch, device))


def case_policy_gradient_returns():
    policy = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to("cuda")
    logs, rewards, state = [], [], np.zeros(3, dtype=np.float32)
    for _ in range(5):
        distribution = torch.distributions.Categorical(logits=policy(torch.from_numpy(state).unsqueeze(0).to("cuda")))
        action = distribution.sample()
        logs.append(distribution.log_prob(action))
        rewards.append(1.0 if action.item() else 0.5)
        state = np.roll(state + action.item(), 1)
    returns = torch.tensor(np.cumsum(rewards[::-1])[::-1].copy(), dtype=torch.float32)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = torch.stack([-log * value for log, value in zip(logs, returns)]).sum()
    loss.backward()
    return loss.item()


def case_policy_gradient_returns_as_vector():
    policy = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to("cuda")
    states = torch.randn(5, 3, device="cuda")
    distribution = torch.distributions.Categorical(logits=policy(states))
    actions = distribution.sample()
    rewards = [1.0 if action else 0.5 for action in actions.tolist()]
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    advantage = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = -(distribution.log_prob(actions) * advantage).mean()  # raises
    loss.backward()
