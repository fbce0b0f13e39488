import torch
from torch import nn
from torch.nn import functional as F

from linkpred import GCN, EdgeDecoder, karate_like
from linkpred.graph import split_edges
from linkpred.sampling import NegativeSampler

use_cuda = torch.cuda.is_available()
device = torch.device("cuda:2" if use_cuda else "cpu")

full = karate_like()
train, held_out = split_edges(full, generator=torch.Generator().manual_seed(0))
sample_negatives = NegativeSampler(full)
train.to(device)

model = nn.ModuleDict({"encoder": GCN(full.n, 8, 4), "decoder": EdgeDecoder(4)})
if use_cuda:
    model.to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)


def auc(pos, neg):
    return (pos[:, None] > neg[None]).float().mean()


history = torch.zeros(4, 2)
for epoch in range(len(history)):
    model.train()
    optimizer.zero_grad()
    z = model["encoder"](train)
    neg = sample_negatives(train.pos.size(1))
    pos_score, neg_score = model["decoder"](z, train.pos), model["decoder"](z, neg)
    scores = torch.cat([pos_score, neg_score])
    target = torch.cat([torch.ones(len(pos_score)), torch.zeros(len(neg_score))]).to(scores)
    loss = F.binary_cross_entropy_with_logits(scores, target)
    loss.backward()
    optimizer.step()

    model.eval()
    with torch.no_grad():
        z = model["encoder"](train)
        value = auc(model["decoder"](z, held_out), model["decoder"](z, sample_negatives(held_out.size(1))))
    history[epoch, 0] = loss.detach()
    history[epoch, 1] = value
best = history[:, 1].argmax()
print(history[best].tolist(), z.cpu().numpy().shape)
