import torch
import torch.nn.functional as F


class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.val, self.sum, self.count = 0.0, 0.0, 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


@torch.no_grad()
def accuracy(logits, target):
    return logits.argmax(1).eq(target).float().mean()


def cross_entropy_smooth(logits, target, eps=0.1):
    n = logits.size(-1)
    onehot = torch.full_like(logits, eps / (n - 1)).scatter_(1, target.unsqueeze(1), 1 - eps)
    return -(onehot * F.log_softmax(logits, dim=-1)).sum(-1).mean()


def save_checkpoint(path, model, optimizer, epoch):
    torch.save({"model": model.state_dict(), "optim": optimizer.state_dict(), "epoch": epoch}, path)


def load_checkpoint(path, model, optimizer, device):
    ckpt = torch.load(path, map_location=device)
    model.load_state_dict(ckpt["model"])
    optimizer.load_state_dict(ckpt["optim"])
    return ckpt["epoch"]
