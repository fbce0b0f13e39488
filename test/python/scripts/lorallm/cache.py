import torch


class GrowingCache:
    """Concatenates keys and values, layer by layer."""

    def __init__(self):
        self.layers = {}

    def seen(self, layer=0):
        return self.layers[layer][0].size(2) if layer in self.layers else 0

    def update(self, layer, k, v):
        if layer in self.layers:
            old_k, old_v = self.layers[layer]
            k, v = torch.cat([old_k, k], 2), torch.cat([old_v, v], 2)
        self.layers[layer] = (k, v)
        return k, v

    def reorder(self, order):
        for i, (k, v) in self.layers.items():
            self.layers[i] = (k.index_select(0, order.to(k.device)), v.index_select(0, order.to(v.device)))


class StaticCache(GrowingCache):
    """All memory taken at the start."""

    def __init__(self, n_layers, batch, heads, max_len, head_dim, dtype=torch.float32):
        super().__init__()
        shape = (batch, heads, max_len, head_dim)
        self.k = [torch.zeros(shape, dtype=dtype) for _ in range(n_layers)]
        self.v = [torch.zeros(shape, dtype=dtype) for _ in range(n_layers)]
        self.fill = [0] * n_layers

    def seen(self, layer=0):
        return self.fill[layer]

    def update(self, layer, k, v):
        lo, hi = self.fill[layer], self.fill[layer] + k.size(2)
        self.k[layer][:, :, lo:hi] = k
        self.v[layer][:, :, lo:hi] = v
        self.fill[layer] = hi
        return self.k[layer][:, :, :hi], self.v[layer][:, :, :hi]

    def reorder(self, order):
        for i in range(len(self.k)):
            self.k[i], self.v[i] = self.k[i][order], self.v[i][order]
