import torch
from torch import nn


class StageTrainer:
    def __init__(self, model, optimizer, device, clip=1.0):
        self.model, self.optimizer, self.clip = model, optimizer, clip
        self.device = torch.device(device)
        self.running_loss = torch.tensor(0.0).to(self.device)
        self.steps = 0

    def prepare_inputs(self, batch):
        return {k: v.to(self.device) if torch.is_tensor(v) else v for k, v in batch.items()}

    def training_step(self, batch):
        self.model.train()
        loss = self.model(**self.prepare_inputs(batch))["loss"]
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

    def train(self, loader, epochs=1):
        for _ in range(epochs):
            for batch in loader:
                self.running_loss += self.training_step(batch)  # raises
                self.steps += 1
        return self.running_loss.item() / self.steps
