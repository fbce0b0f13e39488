"""main.py CONFIG: contrastive pretraining of an encoder of point clouds, then segmentation into parts."""
import copy
import sys

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

import configs
from clouds import PARTS, Tables, jitter
from models import PartHead
from registry import ENCODERS, STAGES


class Bank:
    """The latest keys, oldest overwritten first."""

    def __init__(self, size, dim, device):
        self.keys = F.normalize(torch.randn(size, dim), dim=1).to(device)
        self.at = 0

    def push(self, keys):
        end = min(self.at + len(keys), len(self.keys))
        self.keys[self.at:end] = keys[:end - self.at]
        self.at = end % len(self.keys)


@STAGES.register('contrast')
class Contrast:
    def __init__(self, encoder, loader, main_device, device, size, steps, temperature):
        self.student = encoder
        self.teacher = copy.deepcopy(encoder).to(device).requires_grad_(False)
        self.loader, self.steps, self.temperature = loader, steps, temperature
        self.device, self.teacher_device = main_device, device
        self.bank = Bank(size, encoder.out_features // 2, main_device)
        self.optimizer = torch.optim.SGD(encoder.parameters(), lr=0.05, momentum=0.9)

    @torch.no_grad()
    def follow(self, rate=0.9):
        for slow, fast in zip(self.teacher.parameters(), self.student.parameters()):
            slow.copy_(rate * slow + (1 - rate) * fast.to(slow.device))

    def similarity(self, query, key):
        positive = (query * key).sum(1, keepdim=True)  # raises
        negative = query @ self.bank.keys.t()
        return torch.cat([positive, negative], 1) / self.temperature

    def run(self):
        batches = iter(self.loader)
        for step in range(self.steps):
            xyz, _ = next(batches)
            query = F.normalize(self.student(jitter(xyz).to(self.device))[1], dim=1)
            with torch.no_grad():
                key = F.normalize(self.teacher(jitter(xyz).to(self.teacher_device))[1], dim=1)
            logits = self.similarity(query, key)
            loss = F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long, device=logits.device))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.follow()
            self.bank.push(key)
        print(f'contrast {loss.item():.3f}')


@STAGES.register('parts')
class Parts:
    def __init__(self, encoder, loader, main_device, epochs, balance):
        self.model = PartHead(encoder, len(PARTS)).to(main_device)
        self.loader, self.device, self.epochs = loader, main_device, epochs
        self.weight = loader.dataset.weights().to(main_device) if balance else None
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=5e-3)

    def run(self):
        for _ in range(self.epochs):
            union, inside = torch.zeros(len(PARTS)), torch.zeros(len(PARTS))
            for xyz, part in self.loader:
                logits = self.model(xyz.to(self.device))
                loss = F.cross_entropy(logits.flatten(0, 1), part.flatten().to(self.device), self.weight)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                guess = logits.detach().argmax(-1).cpu()
                for k in range(len(PARTS)):
                    a, b = guess == k, part == k
                    inside[k] += (a & b).sum()
                    union[k] += (a | b).sum()
            iou = inside / union.clamp(min=1)
            print('parts', ' '.join(f'{n}={v:.2f}' for n, v in zip(PARTS, iou.tolist())))


def main(name='base'):
    config = configs.load(name)
    torch.manual_seed(config['seed'])
    device = config['device'] if torch.cuda.is_available() else 'cpu'
    loader = DataLoader(Tables(**config['data']), batch_size=6, shuffle=True)
    encoder = ENCODERS.build(config['encoder']).to(device)
    for stage in ('pretrain', 'finetune'):
        STAGES.build(config[stage], encoder=encoder, loader=loader, main_device=device).run()


if __name__ == '__main__':
    main(*sys.argv[1:])
