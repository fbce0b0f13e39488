from token_decoding import *


def step(ids):
    g = torch.arange(8, device=ids.device)
    return torch.sin(ids[:, -1:].float() + g)


def ids():
    return torch.tensor([[0, 3, 4], [0, 5, 5]], device="cuda")


def drive_greedy():
    Generator(step, processors=[RepetitionPenalty(1.2), NoRepeatNGram(2), LengthBias(torch.linspace(0, 1, 5))]).greedy(2, torch.device("cuda"), 12)


def drive_bad_words():
    Generator(step, processors=[BadWords([3])]).greedy(2, "cuda")


def drive_stop():
    StopOnSequences([[3, 4]])(ids())


def drive_filter():
    top_k_top_p_filtering(step(ids()), 4, 0.8).softmax(-1)


def drive_enc():
    expand_encoder(torch.rand(2, 3, 4, device="cuda"), 2)


def drive_cache():
    reorder_cache((torch.rand(2, 3, device="cuda"),), torch.tensor([1, 0], device="cuda"))


def drive_sample():
    Generator(step).sample(ids(), top_k=3)


def drive_beam():
    Generator(step).beam(ids())


def drive_accept():
    p = step(ids().view(-1, 1)).softmax(-1)
    speculative_accept(p, p.roll(1, -1), torch.randint(8, (6,), device="cuda"))
