from forecast_windows import *

dev = torch.device("cuda:0")
cfg = ForecastConfig()
series = torch.randn(120, 3).cumsum(0)
X = torch.randn(4, cfg.context, cfg.input_dim, device=dev)
Y = torch.randn(4, cfg.horizon, device=dev)
codes = torch.tensor([[0, 2], [3, 1]], device=dev)
LENGTHS = torch.tensor([12, 7, 9, 3])


def batches():
    return WindowSampler(series, cfg)


def trainer(device="cuda:0"):
    return Trainer(PatchTransformer(cfg).to(device), F.smooth_l1_loss)


def seq2seq():
    return Seq2Seq(cfg).to(dev)


def seq_train():
    model = Seq2Seq(cfg).to(dev)
    loss = lambda pred, y: pinball_loss(pred, y, cfg.quantiles)
    return Trainer(model, loss).fit(batches())


def revin():
    norm = RevIN(3).to(dev)
    return norm(norm(X, "norm"), "denorm")


CALLS = {
    "standard": lambda: StandardScaler().fit(series).transform(X),
    "standard_gpu": lambda: StandardScaler().fit(series.to(dev)).transform(X),
    "global": lambda: GlobalScaler().fit(series).transform(X),
    "inverse": lambda: StandardScaler().fit(series).inverse(X),
    "revin": revin,
    "cat": lambda: CategoricalEmbedding(cfg.cardinalities, 4).to(dev)(codes),
    "cat_column": lambda: CategoricalEmbedding(cfg.cardinalities, 4).to(dev).column(codes, 1),
    "ple": lambda: PiecewiseLinearEncoder().fit(series).to(dev)(X[:, 0]),
    "ple_codes": lambda: PiecewiseLinearEncoder().fit(series).to(dev).codes(X[:, 0]),
    "imputer": lambda: Imputer(3).to(dev).fit(series.numpy())(X),
    "windows": lambda: list(batches()),
    "windows_random": lambda: WindowSampler(series.to(dev), cfg).random(3),
    "hardest": lambda: WindowSampler(series.to(dev), cfg).hardest(torch.rand(50, device=dev), 3),
    "seq2seq": lambda: seq2seq()(X),
    "seq2seq_teacher": lambda: seq2seq()(X, Y, teacher=0.5),
    "seq2seq_train": seq_train,
    "stateful": lambda: seq2seq().encode_stateful(X),
    "stateful_given": lambda: seq2seq().encode_stateful(X, torch.zeros(1, 4, 16, device=dev)),
    "ragged": lambda: seq2seq().encode_ragged(X, LENGTHS),
    "ragged_gpu": lambda: seq2seq().encode_ragged(X, LENGTHS.to(dev)),
    "patch": lambda: PatchTransformer(cfg).to(dev)(X),
    "patch_causal": lambda: PatchTransformer(cfg, causal=True).to(dev)(X),
    "focal": lambda: FocalLoss([10, 3]).to(dev)(torch.randn(4, 2, device=dev), torch.tensor([0, 1, 1, 0], device=dev)),
    "focal_plain": lambda: FocalLoss([10, 3]).unweighted(torch.randn(4, 2, device=dev), torch.tensor([0, 1, 1, 0], device=dev)),
    "fit": lambda: trainer().fit(batches()),
    "fit_moved": lambda: trainer("cpu").fit(batches()).to("cuda:0").fit(batches()),
    "moved_before": lambda: trainer("cpu").to("cuda:0").fit(batches()),
    "mase": lambda: trainer().mase(batches(), 1.0),
    "rmse": lambda: trainer().rmse(batches()),
    "residuals": lambda: trainer().residuals(batches()),
}
