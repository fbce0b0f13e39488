import torch
from language_pretraining import *

D = "cuda"


def ids(device=D, length=8, batch=2):
    return torch.randint(4, 40, (batch, length), device=device)


def model(position="alibi"):
    return Encoder(PretrainConfig(position=position)).to(D)


def rotary_two():
    cache = RotaryCache(8)
    cache.rotate(torch.randn(2, 6, 8, device="cuda:0"))
    cache.rotate(torch.randn(2, 6, 8, device="cuda:1"))


def rotary_one():
    cache = RotaryCache(8)
    cache.rotate(torch.randn(2, 6, 8, device="cuda:1"))
    cache.rotate(torch.randn(2, 5, 8, device="cuda:0"))


def sinus():
    positions = SinusoidalPositions(PretrainConfig()).cuda()
    positions(torch.randn(2, 6, 16, device="cuda:0"))
    positions(torch.randn(2, 40, 16, device="cuda:1"))


def pipeline(padding):
    net = PipelinedEncoder(PretrainConfig()).place()
    pad = torch.zeros(2, 8, dtype=torch.bool, device="cuda:0") if padding else None
    return net(ids(), pad)


def balanced(clipped):
    loss = BalancedLoss(PretrainConfig()).to(D)
    labels = ids()
    loss.observe(labels)
    loss(torch.randn(2, 8, 40, device=D), labels, clipped)


def packer(device):
    pack = BlockPacker(4)
    pack.add(torch.arange(6, device=device))
    pack.add(torch.arange(7, device=device))


def perplexity(weighted):
    meter = DomainPerplexity(["a", "b"])
    losses, domain = torch.rand(4, device=D), torch.tensor([0, 1, 1, 0], device=D)
    if weighted:
        meter.update_weighted(losses, domain, torch.rand(4, device=D))
    else:
        meter.update(losses, domain)
    meter.compute()


def lamb(master):
    net = torch.nn.Linear(3, 3).to(D)
    optimizer = Lamb(net.parameters(), master=master)
    for _ in range(2):
        optimizer.zero_grad()
        net(torch.randn(2, 3, device=D)).sum().backward()
        optimizer.step()


def accuracy(confusion):
    meter = MaskedAccuracy()
    logits, labels = torch.randn(2, 8, 40, device=D), ids()
    meter.confusion(logits, labels, 40) if confusion else meter.add(logits, labels)


def stream():
    return model().stream([ids(length=3), ids(length=2)])


CALLS = {
    "alibi": lambda: model()(ids(), torch.zeros(2, 8, dtype=torch.bool, device=D)),
    "t5": lambda: model("t5")(ids()),
    "rotary_two": rotary_two,
    "rotary_one": rotary_one,
    "sinus": sinus,
    "stream": stream,
    "language": lambda: model().encode_language(ids(), "sw"),
    "pipeline": lambda: pipeline(False),
    "pipeline_padding": lambda: pipeline(True),
    "token_masking": lambda: TokenMasking(PretrainConfig())(ids()),
    "span_masking": lambda: SpanMasking(PretrainConfig())(ids()),
    "word_masking": lambda: WholeWordMasking(PretrainConfig())(ids(), [[0, 0, 1, 1, 2, 3, 3, 4]] * 2),
    "balanced": lambda: balanced(False),
    "balanced_clipped": lambda: balanced(True),
    "electra": lambda: ReplacedTokenTask(PretrainConfig()).to(D)({"input_ids": ids("cpu")}),
    "packer_gpu": lambda: packer(D),
    "perplexity": lambda: perplexity(False),
    "perplexity_weighted": lambda: perplexity(True),
    "lamb": lambda: lamb(False),
    "lamb_master": lambda: lamb(True),
    "accuracy": lambda: accuracy(False),
    "confusion": lambda: accuracy(True),
}
