from gp_inducing import *


def xy():
    x = torch.rand(10, 2)
    return x, x.sum(1).sin()


def gp():
    return ExactGP(*xy(), RBF(2)).to("cuda")


def xs():
    return torch.rand(5, 2, device="cuda")


def drive_rbf():
    RBF(2).to("cuda").diag(xs())


def drive_sum():
    (RBF(2) + White()).to("cuda")(xs(), xs())


def drive_sum_white():
    (White() + White(0.2) + White(0.3)).to("cuda")(xs(), xs())


def drive_var():
    gp().predict_var(xs())


def drive_var_moved():
    model = ExactGP(*xy(), RBF(2))
    model.predict_var(torch.rand(5, 2))
    model.to("cuda").predict_var(xs())


def drive_mean():
    gp().predict_mean(xs())


def drive_nll():
    gp().prior_nll(torch.randn(10, device="cuda"))


def drive_prior():
    gp().sample_prior(3)


def drive_fourier():
    FourierFeatures(2, 16).to("cuda")(xs())


def drive_hermite():
    GaussHermite().to("cuda")(torch.sigmoid, xs()[:, 0], xs()[:, 1])


def drive_random():
    random_inducing(xs(), 3)


def drive_kmeans():
    kmeans_inducing(xs(), 3)


def drive_ei():
    expected_improvement(xs()[:, 0], xs()[:, 1], 0.3)


def drive_pi():
    probability_of_improvement(xs()[:, 0], xs()[:, 1], 0.3)


def drive_candidates():
    candidates(torch.tensor([[0.0, 0.0], [1.0, 2.0]], device="cuda"), 4)
