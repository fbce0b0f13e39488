import torch


class AnchorMaker:
    """Anchors for a feature map; made once for each size."""

    def __init__(self, stride, scales, per_device=True):
        self.stride = stride
        self.scales = scales
        self.per_device = per_device
        self._kept = {}

    @property
    def per_cell(self):
        return len(self.scales)

    def _make(self, h, w, device):
        ys = (torch.arange(h, device=device) + 0.5) * self.stride
        xs = (torch.arange(w, device=device) + 0.5) * self.stride
        cy, cx = torch.meshgrid(ys, xs, indexing='ij')
        centres = torch.stack([cx, cy], -1).view(-1, 1, 2)
        half = torch.tensor(self.scales, device=device).view(1, -1, 1) / 2
        return torch.cat([centres - half, centres + half], -1).view(-1, 4)

    def __call__(self, feature):
        h, w = feature.shape[-2:]
        key = (h, w, str(feature.device)) if self.per_device else (h, w)
        if key not in self._kept:
            self._kept[key] = self._make(h, w, feature.device)
        return self._kept[key]
