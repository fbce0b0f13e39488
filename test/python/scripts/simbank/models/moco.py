import torch
import torch.nn as nn


class MoCo(nn.Module):
    """Two encoders, the second of which follows the first, and a ring of keys that were seen before."""

    def __init__(self, base_encoder, dim=128, K=65536, m=0.999, T=0.07, shuffle=False):
        super().__init__()
        self.size, self.follow, self.temperature, self.shuffle = K, m, T, shuffle
        self.encoder_q, self.encoder_k = base_encoder(), base_encoder()
        self.encoder_k.load_state_dict(self.encoder_q.state_dict())
        self.encoder_k.requires_grad_(False)
        self.register_buffer("ring", nn.functional.normalize(torch.randn(K, dim), dim=1))
        self.register_buffer("place", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def advance(self):
        for slow, fast in zip(self.encoder_k.parameters(), self.encoder_q.parameters()):
            slow.lerp_(fast, 1 - self.follow)

    @torch.no_grad()
    def remember(self, keys):
        rows = (self.place + torch.arange(len(keys), device=keys.device)) % self.size
        self.ring[rows] = keys
        self.place.add_(len(keys))

    def mixed(self, images):
        """The images in another order, and where each of them went."""
        order = torch.randperm(len(images))
        return images[order], order.argsort()

    def sorted_back(self, keys, where):
        return keys.index_select(0, where)  # raises

    @torch.no_grad()
    def keys_of(self, images):
        if not self.shuffle:
            return self.encoder_k(images)
        images, where = self.mixed(images)
        return self.sorted_back(self.encoder_k(images), where)

    def forward(self, images_q, images_k):
        queries = self.encoder_q(images_q)
        self.advance()
        keys = self.keys_of(images_k)
        beside = (queries * keys).sum(1, keepdim=True)
        logits = torch.cat([beside, queries @ self.ring.clone().t()], dim=1) / self.temperature
        self.remember(keys)
        return logits, logits.new_zeros(len(logits), dtype=torch.long)
