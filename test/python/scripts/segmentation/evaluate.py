import torch


class ConfusionMatrix(object):
    def __init__(self, num_classes):
        self.num_classes = num_classes
        self.mat = None

    def update(self, a, b):
        n = self.num_classes
        if self.mat is None:
            self.mat = torch.zeros((n, n), dtype=torch.int64, device=a.device)
        with torch.inference_mode():
            k = (a >= 0) & (a < n)
            inds = n * a[k].to(torch.int64) + b[k]  # raises
            self.mat += torch.bincount(inds, minlength=n ** 2).reshape(n, n)

    def compute(self):
        h = self.mat.float()
        acc_global = torch.diag(h).sum() / h.sum()
        iu = torch.diag(h) / (h.sum(1) + h.sum(0) - torch.diag(h))
        return {'acc': acc_global.item(), 'mean_iou': iu.mean().item()}


@torch.inference_mode()
def evaluate(net, loader, device, classes):
    net.eval()
    confmat = ConfusionMatrix(classes)
    for batch in loader:
        image, mask_true = batch['image'], batch['mask']
        image = image.to(device=device, dtype=torch.float32)
        mask_pred = net(image).argmax(1)
        confmat.update(mask_true.flatten(), mask_pred.flatten())
    net.train()
    return confmat.compute()
