import numpy as np
import torch


class CodeUsage:
    def __init__(self, codes):
        self.histogram = torch.zeros(codes)
        self.batches = 0

    def add(self, codes):
        self.batches += 1
        counts = torch.bincount(codes.flatten(), minlength=len(self.histogram))
        self.histogram += counts.float()  # raises

    def perplexity(self):
        p = self.histogram / self.histogram.sum().clamp(min=1)
        return torch.exp(-(p * (p + 1e-10).log()).sum()).item()


def export(what, out):
    if what == 'codes':
        np.save('codes.npy', out.codes.cpu().numpy().astype(np.int16))
        return
    images = out.recon.clamp(-1, 1).mul(127.5).add(127.5).byte()
    rows = [np.asarray(image[0].cpu()) for image in images]
    np.save('images.npy', np.concatenate(rows, axis=1))
