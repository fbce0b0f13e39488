import torch
import torch.nn as nn
import torch.nn.functional as F

from models.attn import AttentionLayer, FullAttention, ProbAttention
from models.embed import DataEmbedding


class Transformer(nn.Module):
    def __init__(self, configs):
        super().__init__()
        self.pred_len = configs.pred_len
        Attn = {'full': FullAttention, 'prob': ProbAttention}[configs.attn]
        d, h = configs.d_model, configs.n_heads
        self.enc_embedding = DataEmbedding(configs.features, d)
        self.dec_embedding = DataEmbedding(configs.features, d)
        self.encoder = AttentionLayer(Attn(False), d, h)
        self.self_attn = AttentionLayer(Attn(True), d, h)
        self.cross_attn = AttentionLayer(FullAttention(False), d, h)
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(3))
        self.projection = nn.Linear(d, configs.features)

    def forward(self, x_enc, x_mark_enc, x_dec, x_mark_dec):
        enc = self.enc_embedding(x_enc, x_mark_enc)
        enc = self.norms[0](enc + self.encoder(enc, enc, enc))
        dec = self.dec_embedding(x_dec, x_mark_dec)
        dec = self.norms[1](dec + self.self_attn(dec, dec, dec))
        dec = self.norms[2](dec + self.cross_attn(dec, enc, enc))
        return self.projection(dec)[:, -self.pred_len:]


class Recurrent(nn.Module):
    def __init__(self, configs):
        super().__init__()
        self.configs = configs
        self.hidden = configs.d_model
        self.build(configs)
        self.head = nn.Linear(self.hidden, configs.pred_len * configs.features)

    def forward(self, x_enc, x_mark_enc, x_dec, x_mark_dec):
        out, _ = self.unroll(x_enc)
        return self.head(out[:, -1]).view(x_enc.size(0), self.configs.pred_len, -1)


class LSTM(Recurrent):
    def build(self, configs):
        self.rnn = nn.LSTM(configs.features, self.hidden, num_layers=2, batch_first=True)

    def init_hidden(self, batch):
        return torch.zeros(2, batch, self.hidden), torch.zeros(2, batch, self.hidden)

    def unroll(self, x):
        state = self.init_hidden(x.size(0))
        return self.rnn(x, state)  # raises


class GRU(Recurrent):
    def build(self, configs):
        self.rnn = nn.GRU(configs.features, self.hidden, batch_first=True)

    def init_hidden(self, batch):
        weight = self.head.weight
        return weight.new_zeros(1, batch, self.hidden)

    def unroll(self, x):
        return self.rnn(x, self.init_hidden(x.size(0)))


class DLinear(nn.Module):
    def __init__(self, configs):
        super().__init__()
        self.k = configs.moving_avg
        self.kernel = torch.ones(1, 1, self.k) / self.k
        self.seasonal = nn.Linear(configs.seq_len, configs.pred_len)
        self.trend = nn.Linear(configs.seq_len, configs.pred_len)

    def forward(self, x_enc, x_mark_enc, x_dec, x_mark_dec):
        x = x_enc.transpose(1, 2)
        padded = F.pad(x, (self.k // 2, self.k // 2), mode='replicate')
        trend = F.conv1d(padded.flatten(0, 1).unsqueeze(1), self.kernel.type_as(x)).view_as(x)
        return (self.seasonal(x - trend) + self.trend(trend)).transpose(1, 2)


model_dict = {'transformer': Transformer, 'lstm': LSTM, 'gru': GRU, 'dlinear': DLinear}
