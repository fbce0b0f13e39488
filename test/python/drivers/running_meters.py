from running_meters import *


def pt():
    return torch.randint(3, (20,), device="cuda"), torch.randint(3, (20,), device="cuda")


def drive_confusion():
    m = ConfusionMatrix(3).to("cuda")
    m(*pt())
    m.reset()
    m(*pt())


def drive_kappa():
    CohenKappa(3, device="cuda")(*pt())


def drive_kappa_linear():
    CohenKappa(3, weights="linear", device="cuda")(*pt())


def drive_auroc():
    AUROC()(torch.rand(20, device="cuda"), torch.randint(2, (20,), device="cuda"))


def recall():
    m = RetrievalRecall(2)
    m(torch.rand(20, 4, device="cuda"), pt()[0])
    return m


def drive_recall():
    recall()


def drive_query():
    recall().query(torch.rand(5, 4, device="cuda"), pt()[0][:5])


def drive_stats():
    s = FeatureStats(3).to("cuda")
    s.update(torch.rand(6, 3, device="cuda"))


def drive_stats_reset():
    s = FeatureStats(3).to("cuda")
    s.update(torch.rand(6, 3, device="cuda"))
    s.reset()
    s.update(torch.rand(6, 3, device="cuda"))


def drive_ece():
    CalibrationError().to("cuda")(torch.randn(20, 3, device="cuda"), pt()[0])


def drive_hist():
    CalibrationError().to("cuda").histogram(torch.randn(20, 3, device="cuda"))
