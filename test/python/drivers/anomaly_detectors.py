import numpy as np
import torch
import anomaly_detectors as A

X = np.random.RandomState(0).randn(16, 4)
T = torch.from_numpy(X).float().cuda()


def mk(name, x=X, **k): return A.DetectorConfig(name, **k).build().fit(x)
def use(name, x=X): 
    d = mk(name, x); d.decision(x); d.predict(x); return d


def drive_gaussian(): use("gaussian")
def drive_whiten(): mk("gaussian").whiten(T)
def drive_neigh(): use("neighbours")
def drive_off(): use("offloaded")
def drive_explain(): mk("offloaded").explain(T)
def drive_core(): A.CoreSet().take(T)
def drive_core_rows(): A.CoreSet().take_rows(T)
I = torch.rand(5, 1, 6, 6)
def drive_patch(): use("patches", I).heatmap(I)
def drive_patch_smooth(): mk("patches", I).heatmap(I, smooth=True)
def drive_ae(): use("autoencoder")
def drive_contrib(): mk("autoencoder").contributions(T)
def drive_mem(): use_mem().code(T)
def use_mem(): 
    d = mk("memae"); d.decision(X.tolist()); return d
def drive_revive(): use_mem().revive(T)
def drive_svdd(): use("svdd").soft_boundary(T)
def drive_bands(): mk("svdd").bands(T)
def drive_forecast(): use_f().smooth(T[:, 0])
def use_f():
    d = mk("forecast"); d.predict(X); return d
def drive_season(): use_f().deseasonalize(T[:, 0])
def drive_pot(): A.PeaksOverThreshold()(torch.rand(40, device="cuda"))
def drive_levels(): A.PeaksOverThreshold().levels(torch.rand(40, device="cuda"))
def ens(join="mean"): return A.Ensemble([A.DetectorConfig("gaussian", device="cuda:0"), A.DetectorConfig("svdd", device="cuda:1")], join).fit(X)
def drive_ens(): ens().decision(X); ens("rank").decision(X)
def drive_votes(): ens().votes(X)
def drive_consensus(): ens().consensus(X)
def drive_f1(): A.best_f1(torch.rand(6, device="cuda"), [0, 1, 0, 1, 1, 0])
