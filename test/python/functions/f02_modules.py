import math
from typing import List, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.1, max_len: int = 64):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len, dtype=torch.float).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0), persistent=False)

    def forward(self, x):
        x = x + self.pe[:, : x.size(1)]
        return self.dropout(x)


class SinusoidPosition(nn.Module):
    def __init__(self, d_model: int, max_len: int = 64):
        super().__init__()
        self.d_model = d_model
        self.pe = self._build(max_len, d_model)

    @staticmethod
    def _build(max_len, d_model):
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len, dtype=torch.float).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        return pe

    def forward(self, x):
        return x * math.sqrt(self.d_model) + self.pe[: x.size(1)]  # raises


def positions_from_a_buffer():
    pos = PositionalEncoding(16).to(DEVICE)
    tokens = torch.randint(0, 100, (2, 10), device=DEVICE)
    embed = nn.Embedding(100, 16).to(DEVICE)
    return pos(embed(tokens))


def positions_from_an_attribute():
    pos = SinusoidPosition(16).to(DEVICE)
    tokens = torch.randint(0, 100, (2, 10), device=DEVICE)
    embed = nn.Embedding(100, 16).to(DEVICE)
    return pos(embed(tokens))


class MLPList(nn.Module):
    def __init__(self, sizes: List[int]):
        super().__init__()
        self.layers = []
        for a, b in zip(sizes[:-1], sizes[1:]):
            self.layers.append(nn.Linear(a, b))
        self.norm = nn.LayerNorm(sizes[0])

    def forward(self, x):
        x = self.norm(x)
        for layer in self.layers:
            x = torch.relu(layer(x))  # raises
        return x


class MLPModuleList(nn.Module):
    def __init__(self, sizes: List[int]):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])])
        self.norm = nn.LayerNorm(sizes[0])

    def forward(self, x):
        x = self.norm(x)
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i < len(self.layers) - 1:
                x = torch.relu(x)
        return x


def layers_in_a_list():
    model = MLPList([8, 16, 4])
    model = model.to(DEVICE)
    x = torch.randn(3, 8).to(DEVICE)
    return model(x).sum()


def layers_in_a_module_list():
    model = MLPModuleList([8, 16, 4])
    model = model.to(DEVICE)
    x = torch.randn(3, 8).to(DEVICE)
    return model(x).sum()


class LSTMClassifier(nn.Module):
    def __init__(self, hidden=12, layers=2):
        super().__init__()
        self.hidden, self.layers = hidden, layers
        self.lstm = nn.LSTM(6, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, 2)

    def init_hidden(self, batch: int) -> Tuple[torch.Tensor, torch.Tensor]:
        h0 = torch.zeros(self.layers, batch, self.hidden)
        c0 = torch.zeros(self.layers, batch, self.hidden)
        return h0, c0

    def forward(self, x):
        out, _ = self.lstm(x, self.init_hidden(x.size(0)))  # raises
        return self.head(out[:, -1])


class LSTMTagger(nn.Module):
    def __init__(self, hidden=12, layers=2):
        super().__init__()
        self.hidden, self.layers = hidden, layers
        self.lstm = nn.LSTM(6, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, 2)

    def init_hidden(self, batch: int):
        weight = next(self.parameters())
        return (
            weight.new_zeros(self.layers, batch, self.hidden),
            weight.new_zeros(self.layers, batch, self.hidden),
        )

    def forward(self, x):
        out, (h, _) = self.lstm(x, self.init_hidden(x.size(0)))
        return self.head(out), h[-1]


def lstm_hidden_zeros():
    net = LSTMClassifier().cuda()
    return net(torch.randn(4, 5, 6).cuda())


def lstm_hidden_from_weights():
    net = LSTMTagger().cuda()
    logits, last = net(torch.randn(4, 5, 6).cuda())
    return logits.mean() + last.mean()


class VAE(nn.Module):
    def __init__(self, latent=4):
        super().__init__()
        self.latent = latent
        self.enc = nn.Linear(20, 32)
        self.mu = nn.Linear(32, latent)
        self.logvar = nn.Linear(32, latent)
        self.dec = nn.Sequential(nn.Linear(latent, 32), nn.ReLU(), nn.Linear(32, 20), nn.Sigmoid())

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def forward(self, x):
        h = F.relu(self.enc(x))
        mu, logvar = self.mu(h), self.logvar(h)
        return self.dec(self.reparameterize(mu, logvar)), mu, logvar

    def sample(self, n: int, z: Optional[torch.Tensor] = None):
        if z is None:
            z = torch.randn(n, self.latent)
        return self.dec(z)  # raises


def _vae_loss(recon, x, mu, logvar):
    bce = F.binary_cross_entropy(recon, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


def vae_step():
    model = VAE().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x = torch.rand(4, 20).to(DEVICE)
    recon, mu, logvar = model(x)
    loss = _vae_loss(recon, x, mu, logvar)
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        return model.sample(4, z=torch.randn(4, 4, device=DEVICE)).cpu()


def vae_samples():
    model = VAE().to(DEVICE)
    model.eval()
    with torch.no_grad():
        images = model.sample(8)
    return images.view(8, 4, 5).cpu().numpy()


class Codebook(nn.Module):
    def __init__(self, n=16, dim=4, decay=0.99):
        super().__init__()
        self.n, self.decay = n, decay
        self.register_buffer("codes", torch.randn(n, dim))
        self.register_buffer("usage", torch.zeros(n))
        self.mirrors = {"codes": self.codes}

    def lookup(self, ids):
        return self.codes[ids]

    def nearest(self, z):
        return torch.cdist(z, self.mirrors["codes"]).argmin(-1)  # raises

    def forward(self, z):
        ids = torch.cdist(z, self.codes).argmin(-1)
        onehot = F.one_hot(ids, self.n).type_as(z)
        self.usage.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
        q = self.lookup(ids)
        return z + (q - z).detach(), ids


def codebook_forward():
    vq = Codebook().to(DEVICE)
    z = torch.randn(10, 4, device=DEVICE, requires_grad=True)
    q, ids = vq(z)
    q.sum().backward()
    return ids.float().mean(), vq.usage.sum()


def codebook_alias_of_a_buffer():
    vq = Codebook()
    vq.to(DEVICE)
    z = torch.randn(10, 4, device=DEVICE)
    return vq.lookup(vq.nearest(z))


class ScaledHead(nn.Module):
    def __init__(self, dim, n_cls):
        super().__init__()
        self.proj = nn.Linear(dim, n_cls)
        self.scale = nn.Parameter(torch.ones([]) * math.log(1 / 0.07))
        self.temperature = torch.tensor(2.0)
        self.params = [self.scale]

    def forward(self, x):
        scale = self.params[0].exp().clamp(max=100)
        return scale * self.proj(x) / self.temperature


def scaled_head_with_scalar_attributes():
    head = ScaledHead(8, 3)
    head = head.to("cuda:2")
    out = head(torch.randn(4, 8, device="cuda:2"))
    out.sum().backward()
    return head.scale.grad.item()


class ChannelNorm(nn.Module):
    def __init__(self, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)):
        super().__init__()
        self.mean = torch.tensor(mean).view(1, -1, 1, 1)
        self.std = torch.tensor(std).view(1, -1, 1, 1)
        self.conv = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = (x - self.mean) / self.std  # raises
        return self.conv(x)


def normalization_inside_the_net():
    net = ChannelNorm().to(DEVICE).eval()
    with torch.no_grad():
        return net(torch.rand(2, 3, 8, 8, device=DEVICE)).mean().item()
