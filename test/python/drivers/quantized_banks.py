from quantized_banks import *


def z(n=6):
    return torch.randn(n, 4, device="cuda")


def drive_vq():
    VectorQuantizer(8, 4).to("cuda")(z())[2].backward()


def drive_perplexity():
    vq = VectorQuantizer(8, 4).to("cuda")
    vq.perplexity(vq(z())[1])


def drive_ema():
    vq = EMAVectorQuantizer(8, 4).to("cuda")
    vq(z())
    vq(z())


def drive_ema_update():
    vq = EMAVectorQuantizer(8, 4).to("cuda")
    x = z()
    vq.update(x, vq(x)[1])


def drive_rvq():
    ResidualVQ(3, 8, 4).to("cuda")(z())


def drive_rvq_dropout():
    ResidualVQ(3, 8, 4, dropout=True).to("cuda")(z())


def drive_fsq():
    FSQ([5, 5, 3, 3]).to("cuda")(z())


def drive_fsq_indices():
    fsq = FSQ([5, 5, 3, 3]).to("cuda")
    fsq.indices(fsq(z()))


def drive_hash():
    HashCodebook(4, 6).codes(z())


def drive_queue():
    q = MoCoQueue(4).to("cuda")
    q.enqueue(z())
    q.logits(z(), z())


def drive_moco():
    MoCoQueue(4).to("cuda")(z(), z())


def bank():
    b = FeatureBank(10, 4, 3).to("cuda")
    b.update(torch.arange(6, device="cuda"), z(), torch.randint(3, (6,), device="cuda"))
    return b


def drive_bank():
    bank()


def drive_vote():
    bank().vote(z())
