import json
import random
import sys
from types import SimpleNamespace

import numpy as np
import torch

from recsys_lib.dataset import Interactions
from recsys_lib.evaluate import Evaluator
from recsys_lib.losses import SampledSoftmax, bpr, inverse_propensity
from recsys_lib.models import MatrixFactorization, NeuralCF, TwoTower


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def make_model(options, dataset):
    if options.model == "ncf":
        return NeuralCF(dataset.num_users, dataset.num_items, options.dim)
    if options.model == "towers":
        side = torch.from_numpy(np.random.rand(dataset.num_items, 5).astype(np.float32))
        return TwoTower(dataset.num_users, dataset.num_items, options.dim, side)
    return MatrixFactorization(dataset.num_users, dataset.num_items, options.dim, options.bias)


def train(model, dataset, options, device):
    optimizer = torch.optim.Adagrad(model.parameters(), lr=options.lr)
    softmax = SampledSoftmax(dataset.popularity() if options.loss == "logq" else None)
    weights = inverse_propensity(dataset.popularity()) if options.ips else None
    for epoch in range(options.epochs):
        losses = []
        for users, items, negatives in dataset.batches(options.batch, options.negatives):
            candidates = torch.cat([items.unsqueeze(1), negatives], dim=1).to(device)
            scores = model(users.to(device), candidates)
            if options.loss == "bpr":
                loss = bpr(scores[:, :1], scores[:, 1:])
            else:
                loss = softmax(scores, candidates)
            if weights is not None:
                loss = loss * weights[items].mean()
                margin = scores[:, 0] * weights[items]  # raises
                loss = loss + 1e-3 * margin.pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: {np.mean(losses):.4f}")


def main(config):
    with open(config) as handle:
        options = SimpleNamespace(**json.load(handle))
    seed_everything(options.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dataset = Interactions(options.users, options.items, options.pairs, options.seed)
    model = make_model(options, dataset).to(device)
    train(model, dataset, options, device)
    evaluator = Evaluator(dataset, options.k, device, options.filter_seen)
    for metric in options.metrics:
        print(metric, getattr(evaluator, metric)(model))


if __name__ == "__main__":
    main(sys.argv[1])
