import torch.nn as nn
import torch.nn.functional as F


class Down(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, padding=1)
        self.norm = nn.GroupNorm(2, cout)

    def forward(self, x):
        skip = F.relu(self.norm(self.conv(x)))
        return F.avg_pool2d(skip, 2), skip


class Up(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, padding=1)
        self.gate = nn.Conv2d(cout, cout, 1)

    def forward(self, x, skip):
        x = self.conv(F.interpolate(x, scale_factor=2))
        return x * self.gate(skip).sigmoid() + skip


class Bottleneck(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.attn = nn.MultiheadAttention(c, 2, batch_first=True)
        self.norm = nn.LayerNorm(c)

    def forward(self, x):
        b, c, h, w = x.shape
        tokens = self.norm(x.flatten(2).transpose(1, 2))
        out, _ = self.attn(tokens, tokens, tokens, need_weights=False)
        return x + out.transpose(1, 2).reshape(b, c, h, w)
