from bayes_models import *

dev = torch.device("cuda:0")
X = torch.randn(12, 2, device=dev)
Y = torch.sin(X[:, 0])
LABEL = (Y > 0).float()


def kernel(name):
    return build_kernel(KernelConfig(name=name, input_dim=2, ard=name != "cosine")).to(dev)


def moved(cls):
    gp = cls(kernel("rbf")).to(dev).fit(X, Y)
    gp.to("cuda:1")
    return gp.predict(X.to("cuda:1"))


def sparse(lik):
    gp = SparseGP(kernel("rbf"), X[torch.randperm(12)[:4]], lik).to(dev)
    return gp


def train(optimizer):
    gp = sparse(BernoulliLikelihood())
    opt = optimizer(gp.parameters(), lr=0.01)
    for _ in range(2):
        opt.zero_grad()
        mean, var = gp(X)
        loss = gp.q.kl() - gp.likelihood.worst_log_prob(mean, var, LABEL).sum()
        loss.backward()
        opt.step()
    return loss.item()


CALLS = {
    "rbf": lambda: kernel("rbf")(X),
    "periodic": lambda: kernel("periodic")(X),
    "cosine": lambda: kernel("cosine")(X),
    "rff": lambda: RandomFourierFeatures(RBFKernel(2)).to(dev)(X),
    "rff_resample": lambda: RandomFourierFeatures(RBFKernel(2)).to(dev).resample(X),
    "gp": lambda: ExactGP(kernel("rbf")).to(dev).fit(X, Y).predict(X),
    "gp_moved": lambda: moved(ExactGP),
    "gp_movable": lambda: moved(MovableGP),
    "interval": lambda: ExactGP(kernel("rbf")).to(dev).fit(X, Y).credible_interval(X),
    "ell": lambda: (lambda gp: gp.likelihood.expected_log_prob(*gp(X), LABEL))(sparse(BernoulliLikelihood())),
    "worst": lambda: (lambda gp: gp.likelihood.worst_log_prob(*gp(X), LABEL))(sparse(BernoulliLikelihood())),
    "student": lambda: (lambda gp: gp.likelihood.worst_log_prob(*gp(X), Y))(sparse(StudentTLikelihood())),
    "tail": lambda: StudentTLikelihood().to(dev).tail_weight(Y),
    "meanfield": lambda: MeanFieldVariational(4).to(dev).kl(),
    "cholesky_kl": lambda: CholeskyVariational(4).to(dev).kl(),
    "train_adam": lambda: train(torch.optim.Adam),
    "bma": lambda: bma_logits([sparse(BernoulliLikelihood()), sparse(BernoulliLikelihood()).to("cuda:1")], X),
    "bma_one": lambda: bma_logits([sparse(BernoulliLikelihood()), sparse(BernoulliLikelihood())], X),
}
