import numpy as np
import torch
import click_models as M

C = M.ClickModelConfig()
r = np.random.RandomState(0)
LOG = M.SessionLog(r.randint(0, 30, (10, 5)), (r.rand(10, 5) < .4).astype(np.int64), r.randint(2, 6, 10))
LOG.mask[0] = True
B = {k: v.to("cuda") for k, v in LOG.tensors().items()}


def mk(n): return M.ClickModel.create(n, C)


def drive_pbm(): M.Trainer(mk("positionbased")).fit(LOG, 2)
def drive_ubm(): M.Trainer(mk("userbrowsing")).fit(LOG)
def drive_cascade(): M.Trainer(mk("cascade")).fit(LOG)
def drive_dbn(): M.Trainer(mk("bayesian")).fit(LOG)
def drive_gru(): M.Trainer(mk("recurrent")).fit(LOG)
def drive_perplexity(): mk("positionbased").perplexity(B)
def drive_expected(): mk("cascade").expected(B["docs"])
def drive_satisfied(): mk("bayesian").satisfied_after(B["docs"])
def drive_simulate(): mk("recurrent").simulate(LOG.tensors()["docs"])
def drive_most_likely(): mk("recurrent").most_likely(LOG.tensors()["docs"])
def drive_em(): M.ExpectationMaximization(C).fit(LOG)
def drive_em_online(): M.ExpectationMaximization(C).fit_online(LOG)
def drive_pull(): M.ExpectationMaximization(C).pull_towards(LOG)
P = M.Propensities([1, .8, .6, .4, .05])
def drive_propensities(): P(torch.tensor([[0, 1], [4, 2]], device="cuda"))
def drive_snips(): P.snips(torch.rand(3, device="cuda"), torch.tensor([0, 1, 4], device="cuda"))
def drive_of_batch(): P.of_batch(B["clicks"])
def drive_doubly(): M.DoublyRobust(P, mk("positionbased"))(torch.rand(10, 5, device="cuda"), B)
def drive_metrics():
    m = M.RankingMetrics(3); m.update(torch.rand(10, 5, device="cuda"), B["clicks"]); m.update(torch.rand(10, 5, device="cuda"), B["clicks"]); m.compute()
def drive_corr(): M.RankingMetrics().correlations([mk("cascade"), mk("bayesian")], torch.arange(8))
def drive_rank_fixed(): M.RankTable(C, False).to("cuda")(torch.Size([3, 5]))
