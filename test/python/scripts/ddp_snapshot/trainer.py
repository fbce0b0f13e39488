import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


class Trainer:
    def __init__(self, model, loader, optimizer, gpu_id, snapshot_path, save_every=1):
        self.gpu_id = gpu_id
        self.model = model.to(gpu_id)
        self.loader, self.optimizer = loader, optimizer
        self.save_every, self.epochs_run, self.snapshot_path = save_every, 0, snapshot_path
        if os.path.exists(snapshot_path):
            self._load_snapshot(snapshot_path)
        self.model = DDP(self.model, device_ids=[gpu_id])

    def _load_snapshot(self, path):
        snapshot = torch.load(path, map_location=f"cuda:{self.gpu_id}")
        self.model.load_state_dict(snapshot["MODEL_STATE"])
        self.optimizer.load_state_dict(snapshot["OPT_STATE"])
        self.epochs_run = snapshot["EPOCHS_RUN"]
        self.best = snapshot["BEST"]

    def _run_batch(self, source, targets):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(source), targets)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def _run_epoch(self, epoch):
        self.loader.sampler.set_epoch(epoch)
        total = torch.zeros(2, device=self.gpu_id)
        for source, targets in self.loader:
            source, targets = source.to(self.gpu_id), targets.to(self.gpu_id)
            loss = self._run_batch(source, targets)
            total += torch.stack([loss * targets.numel(), loss.new_tensor(targets.numel())])
        dist.all_reduce(total)
        return (total[0] / total[1])

    def train(self, max_epochs):
        best = getattr(self, "best", torch.tensor(float("inf")))
        for epoch in range(self.epochs_run, max_epochs):
            mean = self._run_epoch(epoch)
            best = torch.minimum(best.to(mean.device), mean)
            if self.gpu_id == 0 and epoch % self.save_every == 0:
                torch.save({"MODEL_STATE": self.model.module.state_dict(), "OPT_STATE": self.optimizer.state_dict(),
                            "EPOCHS_RUN": epoch + 1, "BEST": best}, self.snapshot_path)
            dist.barrier()
        return best.item()
