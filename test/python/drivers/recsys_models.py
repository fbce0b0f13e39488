import numpy as np
import torch
import recsys_models as R

DEVICE = torch.device("cuda:0")


def config():
    torch.manual_seed(0)
    return R.RecConfig(fields=[R.SparseField("user", 5), R.SparseField("item", 7), R.SparseField("hour", 3)])


def ranking_batch():
    columns = torch.stack([torch.randint(0, n, (4,)) for n in (5, 7, 3)], 1)
    return R.move_batch({"columns": columns, "label": torch.ones(4), "weight": torch.rand(4)}, DEVICE)


def pair_batch():
    return R.move_batch({"user": torch.randint(0, 12, (4,)), "item": torch.randint(1, 40, (4,))}, DEVICE)


def history():
    data = torch.randint(1, 40, (3, 6))
    data[0, 4:] = 0
    return data.to(DEVICE)


def counts():
    return np.arange(1, 41).astype(np.float64)


def tower():
    model = R.TwoTower(config()).to(DEVICE)
    model.set_popularity(counts())
    model.queued_loss(pair_batch())
    return model


def ranker(name):
    return R.MODELS[name](config()).to(DEVICE)


def experts():
    return R.MODELS["mmoe"](config()).spread()


def graph():
    return R.LightGCN(config(), torch.stack([torch.arange(12), torch.arange(12) * 3])).to(DEVICE)


def sasrec():
    return R.SASRec(config()).to(DEVICE)


def recommend():
    model, data = sasrec(), history()
    for user in range(3):
        model.observe(user, data[user])
    with torch.no_grad():
        return model.recommend(range(3), data)


def index():
    return R.RetrievalIndex().build(torch.randn(40, 8, device=DEVICE))


def queries():
    return torch.randn(3, 8, device=DEVICE)


def ranked():
    return torch.randint(0, 40, (4, 3), device=DEVICE), torch.randint(0, 40, (4,), device=DEVICE)


CALLS = {
    "fwfm_loss": lambda: ranker("fwfm").training_loss(ranking_batch()).backward(),
    "fwfm_regularized": lambda: ranker("fwfm").regularized_loss(ranking_batch()),
    "mmoe": lambda: experts()(ranking_batch()),
    "mmoe_diversity": lambda: experts().diversity(ranking_batch()),
    "dien": lambda: R.InterestExtractor(40, 8).to(DEVICE)(history()),
    "dien_attention": lambda: R.InterestExtractor(40, 8).to(DEVICE).attention(history(), history()[:, 0]),
    "dien_last": lambda: R.InterestExtractor(40, 8).to(DEVICE).last_interest(history()),
    "tower_corrected": lambda: tower().corrected_loss(pair_batch()),
    "tower_queue": lambda: tower().queued_loss(pair_batch(), mask_same=True),
    "tower_margin": lambda: tower().queue_margin(pair_batch()),
    "sasrec": lambda: sasrec().encode(history()),
    "sasrec_reversed": lambda: sasrec().encode_reversed(history()),
    "sasrec_recommend": recommend,
    "sasrec_bpr": lambda: sasrec().bpr(history(), history()[:, 1], R.PopularitySampler(counts())),
    "sampler_uniform": lambda: R.PopularitySampler(counts()).uniform(4, DEVICE),
    "gcn": lambda: graph().propagate(),
    "gcn_smoothness": lambda: graph().smoothness(),
    "index_search": lambda: index().search(queries(), 3),
    "index_rescore": lambda: index().rescore(queries(), index().search(queries(), 3)[1]),
    "metrics_ndcg": lambda: R.RankingMetrics().ndcg(*ranked()),
    "metrics_coverage": lambda: R.RankingMetrics().coverage(ranked()[0]),
}
