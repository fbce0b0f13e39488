import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

from recsys import LOSSES, MODELS
from recsys.data import Interactions


def to_namespace(obj):
    return SimpleNamespace(**{k: to_namespace(v) if isinstance(v, dict) and "name" not in v else v for k, v in obj.items()})


@torch.no_grad()
def evaluate(model, data, topk, device):
    model.eval()
    users = torch.arange(data.users)
    table = model.item_vectors()
    scores = model.user_vectors(users.to(device)) @ table.T
    scores[data.seen_mask(users)] = -torch.inf
    target = torch.tensor([data.held_out[u] for u in users.tolist()])
    ranked = scores.topk(max(topk), dim=1).indices.cpu()
    hits = ranked == target[:, None]
    mrr = (hits.float() / torch.arange(1, max(topk) + 1)).sum(1).mean()
    return {**{f"recall@{k}": hits[:, :k].any(1).float().mean().item() for k in topk}, "mrr": mrr.item()}


def main(path="config.json"):
    cfg = to_namespace(json.loads(Path(path).read_text()))
    device = torch.device(cfg.device)
    data = Interactions()
    model = MODELS.make(cfg.model, data.users, data.items, data.item_features).to(device)
    criterions = {"main": LOSSES.make(cfg.loss, popularity=data.popularity), "aux": LOSSES.make({"name": "softmax"}, popularity=data.popularity)}
    opt = torch.optim.Adam(model.parameters(), lr=cfg.train.lr)
    best = None
    for epoch in range(cfg.train.epochs):
        model.train()
        seen = 0
        for batch in data.batches(cfg.train.batch, cfg.train.negatives):
            seen += batch["user"].numel()
            batch = {k: v.to(device) for k, v in batch.items()}
            pos, neg = model(batch["user"], batch["pos"]), model(batch["user"], batch["neg"])
            loss = criterions["main"](pos, neg, batch) + 0.1 * criterions["aux"](pos, neg, batch)
            opt.zero_grad()
            loss.backward()
            opt.step()
        report = evaluate(model, data, cfg.eval.topk, device)
        if best is None or report["mrr"] > best[0]:
            best = report["mrr"], {k: v.cpu() for k, v in model.state_dict().items()}
        print(epoch, seen, loss.item(), report)
    model.load_state_dict(best[1])
    print(evaluate(model, data, cfg.eval.topk, device))


if __name__ == "__main__":
    main(*sys.argv[1:])
