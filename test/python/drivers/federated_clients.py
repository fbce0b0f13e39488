import numpy as np
import torch
import federated_clients as L

C = L.FederatedConfig()


def data(n=9):
    r = np.random.RandomState(0)
    return L.LocalData(r.rand(n, 6), np.arange(n) % 4, 8 if n == 8 else 5)


def two(cls): return [cls(k, C, data(8)) for k in range(2)]
def one(cls, k=0): return cls(k, C, data(8))
def rnd(cls, agg=L.GatheringAggregator): 
    s = L.Server(C, agg(C)); s.run_round(two(cls)); s.run_round(two(cls)); return s
def cuda_state(): return one(L.ResidentClient).upload()


def drive_fedavg(): rnd(L.FedAvgClient)
def drive_fedavg_plain(): rnd(L.FedAvgClient, L.Aggregator)
def drive_resident_gather(): rnd(L.ResidentClient)
def drive_resident_median(): rnd(L.ResidentClient, L.MedianAggregator)
def drive_resident_plain(): rnd(L.ResidentClient, L.Aggregator)
def drive_prox(): rnd(L.FedProxClient)
def drive_dyn(): rnd(L.FedDynClient)
def drive_scaffold(): rnd(L.ScaffoldClient)
def drive_scaffold_controls():
    c = one(L.ScaffoldClient); c.update_controls(L.SmallNet(C).state_dict(), 2)
def drive_balanced(): rnd(L.BalancedClient)
def drive_personal(): 
    c = one(L.PersonalizedClient); c.fit(L.SmallNet(C).state_dict()); c.personal_logits(torch.rand(3, 6))
def drive_mixed(): one(L.PersonalizedClient).mixed_logits(torch.rand(3, 6))
def drive_distill(): one(L.DistillingClient).distill(L.SmallNet(C))
def drive_soft(): one(L.DistillingClient).soft_labels()
def drive_confident(): one(L.DistillingClient).confident()
def drive_topk():
    t = L.TopK(); m = one(L.FedAvgClient).model; t.round_trip(m); t.round_trip(m)
def drive_sign(): L.SignQuantizer().round_trip(one(L.FedAvgClient).model)
def drive_mask(): L.RandomMask().round_trip(one(L.FedAvgClient).model)
def drive_noisy(): L.GaussianPrivacy().noisy(cuda_state())
def drive_noisy_grad():
    m = one(L.FedAvgClient).model; m(torch.rand(4, 6, device="cuda:0")).sum().backward(); L.GaussianPrivacy().noisy_gradients(m)
def drive_bytes():
    u = L.ClientUpdate(1, one(L.ResidentClient, 1).upload(), 3)
    v = L.ClientUpdate.from_bytes(u.to_bytes()); L.Aggregator(C)([v, v])
def drive_accuracy(): L.Server(C, L.Aggregator(C)).accuracy(two(L.FedAvgClient))
def drive_recall(): L.Server(C, L.Aggregator(C)).class_recall(one(L.FedAvgClient))
def drive_similarity(): L.similarity(two(L.FedAvgClient))
