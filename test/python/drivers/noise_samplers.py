from noise_samplers import *


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, t, cond=None):
        h = self.lin(x) * (1 + 0.01 * t.float().view(-1, 1))
        return h if cond is None else h + cond


def model(**kw):
    return GaussianDiffusion(Net(), DiffusionConfig(**kw)).to("cuda")


def drive_betas():
    make_betas("linear", 10).to("cuda")


def drive_emb():
    timestep_embedding(torch.arange(3, device="cuda"), 8)


def drive_karras():
    sample_euler(Net().to("cuda"), torch.randn(2, 4, device="cuda"), get_sigmas_karras(4, 0.1, 10.0, device="cuda"))


def drive_karras_default():
    sample_euler(Net().to("cuda"), torch.randn(2, 4, device="cuda"), get_sigmas_karras(4, 0.1, 10.0))


def drive_thr():
    dynamic_threshold(torch.randn(2, 4, device="cuda"))


def drive_train():
    model().training_loss(torch.randn(2, 4, device="cuda")).backward()


def drive_sample():
    model().sample((2, 4))


def drive_ddim():
    DDIMSampler(model(eta=0.0)).sample((2, 4))


def drive_ddim_eta():
    DDIMSampler(model()).sample((2, 4))


def drive_cfg():
    c = torch.randn(2, 4, device="cuda")
    cfg_denoise(Net().to("cuda"), torch.randn(2, 4, device="cuda"), torch.arange(2, device="cuda"), c, uncond=c * 0)


def drive_cfg_none():
    c = torch.randn(2, 4, device="cuda")
    cfg_denoise(Net().to("cuda"), torch.randn(2, 4, device="cuda"), torch.arange(2, device="cuda"), c)


def drive_ancestral():
    sample_ancestral(Net().to("cuda"), torch.randn(2, 4, device="cuda"))
