import torch
import torch.nn.functional as F


def gradient_penalty(critic, real, fake):
    mix = torch.rand(real.size(0), 1, 1, 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_(True)  # raises
    score = critic(between).sum()
    grad, = torch.autograd.grad(score, between, create_graph=True)
    return ((grad.flatten(1).norm(dim=1) - 1) ** 2).mean()


def zero_centered_penalty(critic, real):
    real = real.detach().requires_grad_(True)
    grad, = torch.autograd.grad(critic(real).sum(), real, create_graph=True)
    return grad.flatten(1).pow(2).sum(1).mean()


class AdversarialObjective:
    def __init__(self, critic, kind, penalty):
        self.critic, self.kind = critic, kind
        self.penalty = torch.tensor(penalty)
        self.optimizer = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.9))

    def score_loss(self, real, fake):
        if self.kind == 'hinge':
            return F.relu(1 - real).mean() + F.relu(1 + fake).mean()
        return fake.mean() - real.mean()

    def train_critic(self, real, fake):
        loss = self.score_loss(self.critic(real), self.critic(fake))
        if self.penalty > 0:
            if self.kind == 'wgan':
                loss = loss + self.penalty * gradient_penalty(self.critic, real, fake)
            else:
                loss = loss + self.penalty * zero_centered_penalty(self.critic, real)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def generator_loss(self, fake):
        return -self.critic(fake).mean()
